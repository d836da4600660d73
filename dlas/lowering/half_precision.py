"""Networks in half precision: what kernels store has 16 bits, what they compute with has 32.

Processors without half-precision arithmetic convert where they load and store.  Sums of
halves would lose more than 16 bits tell, so that sums are float32 everywhere.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np
from tvm import relax

from dlas.lowering.importing import as_array, as_constant
from dlas.lowering.simplify import (
    RESHAPES,
    WEIGHTED,
    Graph,
    Readers,
    bindings_of,
    is_call,
    is_constant,
    live,
    readers_of,
)

HALF = "float16"
MOVES = {
    *RESHAPES,
    *("relax.permute_dims", "relax.strided_slice", "relax.nn.max_pool2d", "relax.concat"),
}
"""Operators that pick elements of tensors, which may be halves."""


def in_halves(graph: Graph) -> Graph:
    """Return a float32 network whose stored numbers are halves, and whose operators compute in float32.

    Weights and inputs of convolutions and linear layers are stored, and values with several readers.
    """
    builder = relax.BlockBuilder()
    with builder.function("main", [graph.images]):
        rewriter = _Rewriter(graph, builder, readers_of(graph))
        for variable, value in graph.bindings:
            rewriter.write(variable, value)
        output = rewriter.wide(graph.output)
        builder.emit_func_output(output)
    found = live(bindings_of(builder.get()["main"]), output)
    return replace(graph, bindings=found, output=output, names=rewriter.names, linear=rewriter.linear)


@dataclass
class _Rewriter:
    """Writes a network binding by binding; maps its variables to float32 values, halves, or both."""

    graph: Graph
    builder: relax.BlockBuilder
    readers: Readers
    values: dict[relax.Expr, relax.Expr] = field(default_factory=dict)
    halves: dict[relax.Expr, relax.Expr] = field(default_factory=dict)
    names: dict[relax.Var, str] = field(default_factory=dict)
    linear: dict[relax.Var, str] = field(default_factory=dict)

    def write(self, variable: relax.Var, value: relax.Expr) -> None:
        """Write one binding."""
        if not isinstance(value, relax.Call):
            self.values[variable] = self.wide(value)
        elif is_call(value, "relax.astype") and value.ty.dtype == value.args[0].ty.dtype:
            self.values[variable] = self.wide(value.args[0])
        elif is_call(value) and value.op.name in WEIGHTED and is_constant(value.args[1]):
            self.values[variable] = self._product(value)
        elif is_call(value) and value.op.name in MOVES and _in_float(variable):
            arguments = [self.half(argument) for argument in value.args]
            self.halves[variable] = self._emit(value, arguments)
        else:
            self.values[variable] = self._emit(value, [self.wide(argument) for argument in value.args])
        for named, of in ((self.names, self.graph.names), (self.linear, self.graph.linear)):
            if variable in of:
                named[self.values[variable]] = of[variable]

    def wide(self, expression: relax.Expr) -> relax.Expr:
        """Return an expression in float32, read from halves where it is stored."""
        if isinstance(expression, relax.Tuple):
            return relax.Tuple([self.wide(item) for item in expression.fields])
        if isinstance(expression, relax.TupleGetItem):
            return self.builder.emit(relax.TupleGetItem(self.wide(expression.tuple_value), expression.index))
        if expression in self.halves or self._stored(expression):
            return self.builder.emit(relax.op.astype(self.half(expression), "float32"))
        return self.values.get(expression, expression)

    def half(self, expression: relax.Expr) -> relax.Expr:
        """Return an expression in halves; what is no tensor of float32, unchanged."""
        if isinstance(expression, relax.Tuple):
            return relax.Tuple([self.half(item) for item in expression.fields])
        if is_constant(expression) and _in_float(expression):
            return as_constant(_rounded(as_array(expression)))
        if not (isinstance(expression, relax.Var) and _in_float(expression)):
            return self.values.get(expression, expression)
        if expression not in self.halves:
            value = self.values.get(expression, expression)
            self.halves[expression] = self.builder.emit(relax.op.astype(value, HALF))
        return self.halves[expression]

    def _stored(self, expression: relax.Expr) -> bool:
        """Whether a value is stored between kernels, as far as that is known: it has other readers."""
        if not (isinstance(expression, relax.Var) and expression in self.values and _in_float(expression)):
            return False
        return len(self.readers[expression]) > 1

    def _product(self, call: relax.Call) -> relax.Var:
        """Return the float32 sums of a convolution or linear layer of halves."""
        x, weight = (self.half(argument) for argument in call.args)
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


def _in_float(value: relax.Expr) -> bool:
    return isinstance(value.ty, relax.TensorType) and str(value.ty.dtype) == "float32"


def _rounded(array: np.ndarray) -> np.ndarray:
    """Return an array in halves; numbers beyond their range become the largest."""
    limit = float(np.finfo(HALF).max)
    return np.ascontiguousarray(np.clip(array, -limit, limit).astype(HALF))
