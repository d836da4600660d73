"""Networks in 16 bits: what kernels store has 16 bits, float16 or bfloat16, what they compute with has 32.

Processors without arithmetic in 16 bits convert where they load and store.  Sums in
16 bits would lose more than the numbers tell, so that sums are float32; schedules may add a few products in
16 bits first.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial

import numpy as np
from tvm import relax

from dlas.lowering.graph.bfloat16 import from_bfloat16, to_bfloat16
from dlas.lowering.graph.graph import (
    RESHAPES,
    WEIGHTED,
    Graph,
    Readers,
    as_array,
    as_constant,
    is_call,
    is_constant,
    live,
    readers_of,
    shape_of,
    unreadable,
)
from dlas.lowering.graph.rewriter import Rewriter
from dlas.stack import BFLOAT16, Array
from dlas.stack import bfloat16 as numbers

FLOAT16 = "float16"
MOVES = frozenset({*RESHAPES, "relax.permute_dims", "relax.strided_slice", "relax.concat"})
"""Operators that pick elements of tensors, which may have 16 bits."""


@dataclass(frozen=True)
class StorageFormat:
    """How numbers of 16 bits are stored."""

    narrow: Callable[[relax.Expr], relax.Expr]
    widen: Callable[[relax.Expr], relax.Expr]
    """Return a tensor of Relax in 16 bits, and in float32."""
    constant: Callable[[Array], Array]
    value: Callable[[Array], Array]
    """The same for an array."""
    moves: frozenset[str] = MOVES
    """Operators that compute nothing with a number: those of TVM take it as it is."""
    bits: bool = False
    """Whether TVM's own operators take stored numbers for integers."""


def _rounded(array: Array) -> Array:
    """Return an array in float16; numbers beyond its range become the largest."""
    limit = float(np.finfo(FLOAT16).max)
    return np.clip(array, -limit, limit).astype(FLOAT16)


def _rounded_to_bits(array: Array) -> Array:
    """Return an array in bfloat16; a zero without its sign, so that its bits are zero."""
    return numbers.to_bfloat16(array + np.float32(0))


FORMATS = {
    FLOAT16: StorageFormat(
        narrow=partial(relax.op.astype, dtype=FLOAT16),
        widen=partial(relax.op.astype, dtype="float32"),
        constant=_rounded,
        value=lambda array: array.astype(np.float32),
        moves=MOVES | {"relax.nn.max_pool2d"},
    ),
    BFLOAT16: StorageFormat(to_bfloat16, from_bfloat16, _rounded_to_bits, numbers.from_bfloat16, bits=True),
}
"""By the type's name."""


def in_halves(graph: Graph) -> Graph:
    """Return a network whose stored numbers have 16 bits, and whose operators compute in float32.

    Weights and inputs of convolutions and linear layers are stored, and values with several readers.
    A network whose numbers are to be stored in float32 is returned as it is.
    """
    if graph.halves is None:
        return graph
    return live(_HalfRewriter(graph, readers=readers_of(graph), stored=FORMATS[graph.halves]).write())


@dataclass(kw_only=True)
class _HalfRewriter(Rewriter):
    """Maps variables to float32 values, to those of 16 bits (``halves``), or both."""

    readers: Readers
    stored: StorageFormat
    halves: dict[relax.Expr, relax.Expr] = field(default_factory=dict)

    def visit(self, variable: relax.Var, value: relax.Expr) -> None:
        """Write one binding, in 16 bits where it computes nothing with a number."""
        if _keeps_type(value) and value.args[0] in self.halves:
            self.halves[variable] = self.halves[value.args[0]]
        elif is_call(value) and value.op.name in self.stored.moves and _in_float(variable):
            self.halves[variable] = self.emit_call(value, [self.half(argument) for argument in value.args])
        else:
            super().visit(variable, value)

    def call(self, variable: relax.Var, call: relax.Call) -> relax.Expr:
        """Return a call in float32; a product by a stored weight reads 16 bits."""
        if _keeps_type(call):
            return self.of(call.args[0])
        if is_call(call) and call.op.name in WEIGHTED and is_constant(call.args[1]):
            return self._product(call)
        return super().call(variable, call)

    def of(self, expression: relax.Expr) -> relax.Expr:
        """Return an expression in float32, read from 16 bits where it is stored."""
        if expression in self.halves or self._stored(expression):
            return self.builder.emit(self.stored.widen(self.half(expression)))
        return super().of(expression)

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
            return self.emit_call(call, [self.builder.emit(self.stored.widen(x)), wide])
        if call.op.name == "relax.matmul":
            return self.builder.emit(relax.op.matmul(x, weight, out_dtype="float32"))
        a = call.attrs
        lists = {"strides": a.strides, "padding": a.padding, "dilation": a.dilation}
        options = {name: [int(value) for value in values] for name, values in lists.items()}
        layouts = {name: str(getattr(a, name)) for name in ("data_layout", "kernel_layout", "out_layout")}
        groups = int(a.groups)
        convolved = relax.op.nn.conv2d(x, weight, groups=groups, out_dtype="float32", **options, **layouts)
        return self.builder.emit(convolved)


def _keeps_type(value: relax.Expr) -> bool:
    """Whether an expression converts a tensor to the type that it has."""
    return is_call(value, "relax.astype") and bool(value.ty.dtype == value.args[0].ty.dtype)


def _has_a_kernel(call: relax.Call) -> bool:
    """Whether a product by a stored weight is left to no operator of TVM's own."""
    if call.op.name == "relax.nn.conv2d":
        return unreadable(call) is None
    return len(shape_of(call.args[0])) >= 2 == len(shape_of(call.args[1]))


def _in_float(value: relax.Expr) -> bool:
    return isinstance(value.ty, relax.TensorType) and str(value.ty.dtype) == "float32"
