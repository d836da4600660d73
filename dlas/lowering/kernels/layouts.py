"""Keep activations in the layout they were written in, and convert only where a reader needs another.

Each algorithm chooses the layouts that its convolutions read and write.  Operators
between convolutions (pooling, additions, activations, concatenation) keep the layout
of their inputs where they can; all others read NCHW.

Where channels do not divide into blocks, the last block is padded.  The padded channels
hold undefined values: no operator lets them reach another channel.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np
from tvm import relax, te, tirx

from dlas.lowering.graph.graph import OPAQUE, is_call, shape_of
from dlas.lowering.graph.scalars import SCALARS
from dlas.stack import CHANGE_LAYOUT, Array, blocked_shape, channel_block

PLAIN = "NCHW"


@dataclass
class Layouts:
    """The layout of every value of a Relax function under construction."""

    builder: relax.BlockBuilder
    """Receives the layout conversions."""
    _blocked: dict[relax.Expr, tuple[str, int]] = field(default_factory=dict)
    _changed: dict[tuple[relax.Expr, str], relax.Expr] = field(default_factory=dict)

    def of(self, value: relax.Expr) -> str:
        """Return the layout that a value has."""
        return self._blocked[value][0] if value in self._blocked else PLAIN

    def shape(self, value: relax.Expr) -> tuple[int, ...]:
        """Return the shape of a value in NCHW, whatever its layout."""
        shape = shape_of(value)
        return (shape[0], self._blocked[value][1], *shape[2:4]) if value in self._blocked else shape

    def emit(self, expression: relax.Expr, layout: str, channels: int) -> relax.Var:
        """Return a new variable bound to ``expression``, which has ``channels`` channels in ``layout``."""
        return self._record(self.builder.emit(expression), layout, channels)

    def _record(self, variable: relax.Var, layout: str, channels: int) -> relax.Var:
        if layout != PLAIN:
            self._blocked[variable] = layout, channels
        return variable

    def read(self, value: relax.Expr, layout: str) -> relax.Expr:
        """Return ``value`` converted to ``layout``; what is not a tensor, unchanged.

        A tensor that is broadcast to [n, c, h, w] (a bias [c, 1, 1]) gets the shape that
        broadcasts in ``layout``.
        """
        if isinstance(value, relax.Tuple):
            return relax.Tuple([self.read(item, layout) for item in value.fields])
        own = self.of(value)
        if own == layout or not _is_tensor(value):
            return value
        if (value, layout) not in self._changed:
            plain = value if own == PLAIN else self._unblock(value)
            self._changed[value, layout] = plain if layout == PLAIN else self._block(plain, layout)
        return self._changed[value, layout]

    def follow(self, call: relax.Call, arguments: Sequence[relax.Expr]) -> relax.Var | None:
        """Emit an operator in the blocked layout of its inputs; return None if it needs NCHW.

        Parameters
        ----------
        call : relax.Call
            The operator in NCHW.
        arguments : sequence of relax.Expr
            Its arguments, in the layouts that they have.
        """
        layout = self._common(arguments)
        if layout is None or not follows(call):
            return None
        if call.op.name in SCALARS:
            return self._elementwise(call, arguments, layout)
        channels = shape_of(call)[1]
        if call.op.name in _OVER_PLANES:
            written = _OVER_PLANES[call.op.name](call, self.read(arguments[0], layout), layout)
            return self._shaped(call, self.emit(written, layout, channels))
        if not self._end_whole(arguments[0].fields[:-1], layout) or self.of(arguments[0].fields[-1]) == PLAIN:
            return None
        return self.emit(relax.op.concat(self.read(arguments[0], layout), 1), layout, channels)

    def _end_whole(self, values: Sequence[relax.Expr], layout: str) -> bool:
        """Whether values are blocked, each with channels that fill the blocks of ``layout``."""
        blocked = [self._blocked.get(value, (PLAIN, 1)) for value in values]
        return all(own != PLAIN and channels % channel_block(layout) == 0 for own, channels in blocked)

    def _common(self, arguments: Sequence[relax.Expr]) -> str | None:
        """Return the smallest block among the inputs."""
        tensors = [item for a in arguments for item in (a.fields if isinstance(a, relax.Tuple) else [a])]
        layouts = {self.of(tensor) for tensor in tensors} - {PLAIN}
        return min(layouts, key=channel_block) if layouts else None

    def _elementwise(self, call: relax.Call, arguments: Sequence[relax.Expr], layout: str) -> relax.Var:
        inputs = [self.read(argument, layout) for argument in arguments]
        return self.emit(relax.Call(call.op, inputs, call.attrs, call.ty_args), layout, shape_of(call)[1])

    def _shaped(self, call: relax.Call, written: relax.Expr) -> relax.Var:
        """Return a reduction's result in the shape of ``call``: [n, c] if h and w are dropped."""
        if len(shape_of(call)) == 4:
            return written
        return self.builder.emit(relax.op.reshape(self.read(written, PLAIN), shape_of(call)))

    def _block(self, value: relax.Expr, layout: str) -> relax.Var:
        shape = _four(shape_of(value))
        c, target = shape[1], blocked_shape(shape, layout)
        if c == 1 or (math.prod(shape[2:]) == 1 and math.prod(target) == math.prod(shape)):
            return self.emit(relax.op.reshape(value, target), layout, c)
        b = channel_block(layout)
        if shape_of(value) != shape:
            value = self.builder.emit(relax.op.reshape(value, shape))

        def element(
            x: te.Tensor, n: tirx.Expr, k: tirx.Expr, h: tirx.Expr, w: tirx.Expr, lane: tirx.Expr
        ) -> tirx.Expr:
            channel = k * b + lane
            if c % b == 0:
                return x[n, channel, h, w]
            return tirx.if_then_else(channel < c, x[n, channel, h, w], tirx.const(0, x.dtype))

        return self._record(self._change(value, target, element), layout, c)

    def _unblock(self, value: relax.Expr) -> relax.Var:
        n, outer, h, w, b = shape_of(value)
        target = (n, self._blocked[value][1], h, w)
        if h * w == 1 and outer * b == target[1]:
            return self.builder.emit(relax.op.reshape(value, target))
        return self._change(value, target, lambda x, n, k, h, w: x[n, k // b, h, w, k % b])

    def _change(
        self, value: relax.Expr, shape: tuple[int, ...], element: Callable[..., tirx.Expr]
    ) -> relax.Var:
        """Emit a layout conversion as a kernel of its own, so that it is timed by itself."""

        def change(x: te.Tensor) -> te.Tensor:
            return te.compute(shape, lambda *at: element(x, *at), name=CHANGE_LAYOUT)

        alone = {"op_pattern": OPAQUE}
        return self.builder.emit_te(change, value, primfunc_name_hint=CHANGE_LAYOUT, primfunc_attrs=alone)


def follows(call: relax.Expr) -> bool:
    """Whether an operator can keep a blocked layout; a concatenation only if it fills whole blocks."""
    if not is_call(call):
        return False
    name = call.op.name
    if name in REDUCTIONS:
        return {int(axis) % 4 for axis in call.attrs.axis or ()} == {2, 3}
    if name == "relax.concat":
        return int(call.attrs.axis) == 1
    return name in _OVER_PLANES or (name in SCALARS and len(shape_of(call)) == 4)


def block_array(array: Array, layout: str) -> Array:
    """Return an array that broadcasts to [n, c, h, w] as one that broadcasts in ``layout``."""
    if layout == PLAIN:
        return array
    four = array.reshape(_four(array.shape))
    n, outer, h, w, block = blocked_shape(four.shape, layout)
    whole = np.pad(four, [(0, 0), (0, outer * block - four.shape[1]), (0, 0), (0, 0)])
    return np.ascontiguousarray(np.moveaxis(whole.reshape(n, outer, block, h, w), 2, 4))


def block_shape(shape: Sequence[int], layout: str) -> tuple[int, ...]:
    """Return the shape that :func:`block_array` gives an array of ``shape``."""
    return tuple(shape) if layout == PLAIN else blocked_shape(_four(shape), layout)


def _four(shape: Sequence[int]) -> tuple[int, ...]:
    """Return a shape that broadcasts to [n, c, h, w], extended to four dimensions."""
    return (1,) * (4 - len(shape)) + tuple(int(extent) for extent in shape)


def _is_tensor(value: relax.Expr) -> bool:
    """Whether a value has dimensions, and so a layout."""
    return not isinstance(value, tirx.IntImm | tirx.FloatImm | relax.ShapeExpr) and len(shape_of(value)) > 0


def _pool(operator: Callable[..., relax.Expr]) -> Callable[[relax.Call, relax.Expr, str], relax.Expr]:
    """Return the function that writes a pooling operator in a blocked layout."""

    def write(call: relax.Call, x: relax.Expr, layout: str) -> relax.Expr:
        a = call.attrs
        window = [tuple(int(v) for v in field) for field in (a.pool_size, a.strides, a.padding, a.dilation)]
        return operator(x, *window, bool(a.ceil_mode), bool(a.count_include_pad), layout)

    return write


def _adaptive_pool(call: relax.Call, x: relax.Expr, layout: str) -> relax.Expr:
    return relax.op.nn.adaptive_avg_pool2d(x, tuple(int(v) for v in call.attrs.output_size), layout)


def _reduce(operator: Callable[..., relax.Expr]) -> Callable[[relax.Call, relax.Expr, str], relax.Expr]:
    """Return the function that writes a reduction of h and w in a blocked layout."""
    return lambda call, x, layout: operator(x, [2, 3], keepdims=True)


_OVER_PLANES: dict[str, Callable[[relax.Call, relax.Expr, str], relax.Expr]] = {
    "relax.nn.max_pool2d": _pool(relax.op.nn.max_pool2d),
    "relax.nn.avg_pool2d": _pool(relax.op.nn.avg_pool2d),
    "relax.nn.adaptive_avg_pool2d": _adaptive_pool,
    "relax.mean": _reduce(relax.op.mean),
    "relax.sum": _reduce(relax.op.sum),
    "relax.max": _reduce(relax.op.max),
}
"""Operators on each channel's plane: the functions that write them in a blocked layout."""
REDUCTIONS = ("relax.mean", "relax.sum", "relax.max")
"""Those that keep channels apart only if they reduce whole planes."""
