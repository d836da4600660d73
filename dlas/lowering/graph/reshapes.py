"""Compute linear layers, and the elementwise operators behind them, on rows [m, k].

Networks have linear layers of any number of dimensions, some of them exported as matrix
products between two reshapes.  Here all are of two dimensions, as are the activations and
residual additions behind them, so that these can be fused.  A reshape costs nothing.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

from tvm import relax, tirx

from dlas.lowering.graph.graph import Graph, is_call, is_constant, live, shape_of
from dlas.lowering.graph.rewriter import Rewriter
from dlas.lowering.graph.scalars import SCALARS
from dlas.stack import BFLOAT16_BITS

PRODUCTS = {
    ("float32", "float32", "float32"),
    *((kind, kind, "float32") for kind in ("float16", BFLOAT16_BITS)),
    *((x, weight, "int32") for x in ("uint8", "int8") for weight in ("int8", "int16")),
}
"""Types of a linear layer's input, weight and output."""


def in_rows(graph: Graph) -> Graph:
    """Return the network with linear layers and what follows them on rows."""
    return live(_RowRewriter(graph).write())


def multiplies_rows(call: relax.Expr) -> bool:
    """Whether a call multiplies rows [..., c] by a constant matrix [c, k], in types that have kernels."""
    if not (is_call(call, "relax.matmul") and is_constant(call.args[1])):
        return False
    x, weight = call.args
    types = tuple(str(value.ty.dtype) for value in (x, weight, call))
    return len(shape_of(x)) >= 2 == len(shape_of(weight)) and types in PRODUCTS


@dataclass
class _RowRewriter(Rewriter):
    """Writes products on rows, and leaves out reshapes that change nothing."""

    origins: dict[relax.Expr, relax.Expr] = field(default_factory=dict)
    """By variable, what it is a reshape of."""
    rows: set[relax.Expr] = field(default_factory=set)
    """Variables [m, k] that linear layers and operators behind them have computed."""

    def call(self, variable: relax.Var, call: relax.Call) -> relax.Expr:
        """Return what a call computes, on rows if it is a linear layer or follows one."""
        arguments = [self.of(argument) for argument in call.args]
        if is_call(call, "relax.reshape"):
            return self._reshaped(arguments[0], shape_of(call))
        if multiplies_rows(call):
            return self._on_rows(variable, call, arguments[:1], arguments[1:])
        if self._follows_rows(call, arguments):
            return self._on_rows(variable, call, arguments, [])
        return self.emit_call(call, arguments)

    def _reshaped(self, x: relax.Expr, shape: Sequence[int]) -> relax.Expr:
        """Return ``x`` in another shape, by one reshape at most."""
        origin = self.origins.get(x, x)
        if shape_of(origin) == tuple(shape):
            return origin
        reshaped = self.builder.emit(relax.op.reshape(origin, shape))
        self.origins[reshaped] = origin
        return reshaped

    def _follows_rows(self, call: relax.Call, arguments: Sequence[relax.Expr]) -> bool:
        """Whether a call is elementwise and reads rows, at its full size."""
        if not (is_call(call) and call.op.name in SCALARS):
            return False
        full = [a for a in arguments if not _is_row(a)]
        if not full or any(shape_of(argument) != shape_of(call) for argument in full):
            return False
        read = [self.origins.get(argument, argument) for argument in full]
        return any(origin in self.rows and shape_of(origin)[-1] == shape_of(call)[-1] for origin in read)

    def _on_rows(
        self,
        variable: relax.Var,
        call: relax.Call,
        arguments: Sequence[relax.Expr],
        others: Sequence[relax.Expr],
    ) -> relax.Expr:
        """Return a call of ``arguments`` as rows, and ``others`` as they are, in the call's shape."""
        inner = [a if _is_row(a) else self._reshaped(a, _rows_of(a)) for a in arguments]
        rows = self.builder.emit(relax.Call(call.op, [*inner, *others], call.attrs))
        self.rows.add(rows)
        self.name(variable, rows)
        return self._reshaped(rows, shape_of(call))


def _rows_of(value: relax.Expr) -> tuple[int, int]:
    """Return the shape of a tensor's rows."""
    *lead, last = shape_of(value)
    return math.prod(lead), last


def _is_row(operand: relax.Expr) -> bool:
    """Whether an operand is broadcast to all rows alike: a number, or one row."""
    if isinstance(operand, tirx.IntImm | tirx.FloatImm):
        return True
    return len(shape_of(operand)) <= 1
