"""Networks in 16 bits: what kernels store has 16 bits, float16 or bfloat16, what they compute with has 32.

Processors without arithmetic in 16 bits convert where they load and store.  Sums in
16 bits would lose more than the numbers tell, so that sums are float32; schedules may add a few products in
16 bits first.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import partial

import numpy as np
from tvm import relax

from dlas.lowering.graph.bfloat16 import from_bfloat16, to_bfloat16
from dlas.lowering.graph.importing import as_array, as_constant
from dlas.lowering.graph.simplify import (
    RESHAPES,
    WEIGHTED,
    Graph,
    Readers,
    bindings_of,
    is_call,
    is_constant,
    live,
    readers_of,
    shape_of,
)
from dlas.lowering.kernels.regions import unreadable
from dlas.stack import BFLOAT16, Array
from dlas.stack import bfloat16 as numbers

FLOAT16 = "float16"
MOVES = frozenset({*RESHAPES, "relax.permute_dims", "relax.strided_slice", "relax.concat"})
"""Operators that pick elements of tensors, which may have 16 bits."""


@dataclass(frozen=True)
class Stored:
    """How numbers of 16 bits are stored.

    Parameters
    ----------
    narrow, widen : callable
        Return a tensor of Relax in 16 bits, and in float32.
    constant, value : callable
        The same for an array.
    moves : set of str
        Operators that compute nothing with a number: those of TVM take it as it is.
    bits : bool
        Whether TVM's own operators take stored numbers for integers.
    """

    narrow: Callable[[relax.Expr], relax.Expr]
    widen: Callable[[relax.Expr], relax.Expr]
    constant: Callable[[Array], Array]
    value: Callable[[Array], Array]
    moves: frozenset[str] = MOVES
    bits: bool = False


def _rounded(array: Array) -> Array:
    """Return an array in float16; numbers beyond its range become the largest."""
    limit = float(np.finfo(FLOAT16).max)
    return np.clip(array, -limit, limit).astype(FLOAT16)


def _rounded_to_bits(array: Array) -> Array:
    """Return an array in bfloat16; a zero without its sign, so that its bits are zero."""
    return numbers.to_bfloat16(array + np.float32(0))


STORED = {
    FLOAT16: Stored(
        narrow=partial(relax.op.astype, dtype=FLOAT16),
        widen=partial(relax.op.astype, dtype="float32"),
        constant=_rounded,
        value=lambda array: array.astype(np.float32),
        moves=MOVES | {"relax.nn.max_pool2d"},
    ),
    BFLOAT16: Stored(to_bfloat16, from_bfloat16, _rounded_to_bits, numbers.from_bfloat16, bits=True),
}
"""By the type's name."""


def in_halves(graph: Graph) -> Graph:
    """Return a float32 network whose stored numbers have 16 bits, and whose operators compute in float32.

    Weights and inputs of convolutions and linear layers are stored, and values with several readers.
    """
    assert graph.halves is not None
    builder = relax.BlockBuilder()
    with builder.function("main", [graph.images]):
        rewriter = _Rewriter(graph, builder, readers_of(graph), STORED[graph.halves])
        for variable, value in graph.bindings:
            rewriter.write(variable, value)
        output = rewriter.wide(graph.output)
        builder.emit_func_output(output)
    found = live(bindings_of(builder.get()["main"]), output)
    return replace(graph, bindings=found, output=output, names=rewriter.names, linear=rewriter.linear)


@dataclass
class _Rewriter:
    """Writes a network binding by binding; maps its variables to float32 values, 16 bits, or both."""

    graph: Graph
    builder: relax.BlockBuilder
    readers: Readers
    stored: Stored
    values: dict[relax.Expr, relax.Expr] = field(default_factory=dict)
    halves: dict[relax.Expr, relax.Expr] = field(default_factory=dict)
    names: dict[relax.Var, str] = field(default_factory=dict)
    linear: dict[relax.Var, str] = field(default_factory=dict)

    def write(self, variable: relax.Var, value: relax.Expr) -> None:
        """Write one binding."""
        if not isinstance(value, relax.Call):
            self.values[variable] = self.wide(value)
        elif is_call(value, "relax.astype") and value.ty.dtype == value.args[0].ty.dtype:
            if value.args[0] in self.halves:
                self.halves[variable] = self.halves[value.args[0]]
            else:
                self.values[variable] = self.wide(value.args[0])
        elif is_call(value) and value.op.name in WEIGHTED and is_constant(value.args[1]):
            self.values[variable] = self._product(value)
        elif is_call(value) and value.op.name in self.stored.moves and _in_float(variable):
            arguments = [self.half(argument) for argument in value.args]
            self.halves[variable] = self._emit(value, arguments)
        else:
            self.values[variable] = self._emit(value, [self.wide(argument) for argument in value.args])
        for named, of in ((self.names, self.graph.names), (self.linear, self.graph.linear)):
            if variable in of:
                named[self.values[variable]] = of[variable]

    def wide(self, expression: relax.Expr) -> relax.Expr:
        """Return an expression in float32, read from 16 bits where it is stored."""
        if isinstance(expression, relax.Tuple):
            return relax.Tuple([self.wide(item) for item in expression.fields])
        if isinstance(expression, relax.TupleGetItem):
            return self.builder.emit(relax.TupleGetItem(self.wide(expression.tuple_value), expression.index))
        if expression in self.halves or self._stored(expression):
            return self.builder.emit(self.stored.widen(self.half(expression)))
        return self.values.get(expression, expression)

    def half(self, expression: relax.Expr) -> relax.Expr:
        """Return an expression in 16 bits; what is no tensor of float32, unchanged."""
        if isinstance(expression, relax.Tuple):
            return relax.Tuple([self.half(item) for item in expression.fields])
        if is_constant(expression) and _in_float(expression):
            return as_constant(np.ascontiguousarray(self.stored.constant(as_array(expression))))
        if not (isinstance(expression, relax.Var) and _in_float(expression)):
            return self.values.get(expression, expression)
        if expression not in self.halves:
            value = self.values.get(expression, expression)
            self.halves[expression] = self.builder.emit(self.stored.narrow(value))
        return self.halves[expression]

    def _stored(self, expression: relax.Expr) -> bool:
        """Whether a value is stored between kernels, as far as that is known: it has other readers."""
        if not (isinstance(expression, relax.Var) and expression in self.values and _in_float(expression)):
            return False
        return len(self.readers[expression]) > 1

    def _product(self, call: relax.Call) -> relax.Var:
        """Return the float32 sums of a convolution or linear layer of numbers of 16 bits."""
        x, weight = (self.half(argument) for argument in call.args)
        if self.stored.bits and not _has_a_kernel(call):
            wide = as_constant(np.ascontiguousarray(self.stored.value(as_array(weight))))
            return self._emit(call, [self.builder.emit(self.stored.widen(x)), wide])
        if call.op.name == "relax.matmul":
            return self.builder.emit(relax.op.matmul(x, weight, out_dtype="float32"))
        a = call.attrs
        lists = {"strides": a.strides, "padding": a.padding, "dilation": a.dilation}
        options = {name: [int(value) for value in values] for name, values in lists.items()}
        layouts = {name: str(getattr(a, name)) for name in ("data_layout", "kernel_layout", "out_layout")}
        groups = int(a.groups)
        convolved = relax.op.nn.conv2d(x, weight, groups=groups, out_dtype="float32", **options, **layouts)
        return self.builder.emit(convolved)

    def _emit(self, call: relax.Call, arguments: list[relax.Expr]) -> relax.Var:
        return self.builder.emit(relax.Call(call.op, arguments, call.attrs, call.ty_args))


def _has_a_kernel(call: relax.Call) -> bool:
    """Whether a product by a stored weight is left to no operator of TVM's own."""
    if call.op.name == "relax.nn.conv2d":
        return unreadable(call) is None
    return len(shape_of(call.args[0])) >= 2 == len(shape_of(call.args[1]))


def _in_float(value: relax.Expr) -> bool:
    return isinstance(value.ty, relax.TensorType) and str(value.ty.dtype) == "float32"
