"""Rewrite a quantised network, whose numbers are dequantised before every operator, to integers.

ONNX writes a quantised network as float operators between ``DequantizeLinear`` and
``QuantizeLinear``.  Operators that have a form in integers get it
(:mod:`dlas.lowering.graph.quantised.forms`).
What has none, a sigmoid for example, is computed in float32 between the same quantised numbers.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np
from tvm import relax

from dlas.errors import Unsupported
from dlas.lowering.graph.importing import as_array, as_constant
from dlas.lowering.graph.quantised.forms import Form, integer_form
from dlas.lowering.graph.quantised.numbers import DEQUANTIZE, Format, Numbers, Stored, along_axis
from dlas.lowering.graph.quantised.products import ByteProduct
from dlas.lowering.graph.quantised.writing import Writer, as_float32
from dlas.lowering.graph.scalars import QUANTIZE
from dlas.lowering.graph.simplify import (
    Graph,
    bindings_of,
    folded,
    is_call,
    is_constant,
    live,
    shape_of,
    variables,
)
from dlas.stack import Array


def in_integers(graph: Graph) -> Graph:
    """Return a network with its quantised operators in integers; a network in float as it is.

    Raises
    ------
    Unsupported
        If a scale or a zero point is computed at run time, or an activation has several zero points.
    """
    if not any(is_call(value, QUANTIZE) or is_call(value, DEQUANTIZE) for _, value in graph.bindings):
        return graph
    forms, needed = _plan(graph)
    builder = relax.BlockBuilder()
    with builder.function("main", [graph.images]):
        rewriter = _Rewriter(graph, builder)
        for variable, value in graph.bindings:
            if variable in needed:
                rewriter.write(variable, value, forms.get(variable))
        output = rewriter.of(graph.output)
        builder.emit_func_output(output)
    found = live(bindings_of(builder.get()["main"]), output)
    return replace(graph, bindings=found, output=output, names=rewriter.names, linear=rewriter.linear)


def _plan(graph: Graph) -> tuple[dict[relax.Var, Form], set[relax.Var]]:
    """Return the forms in integers, and all variables that are still read with them."""
    numbers, forms = Numbers(graph), {}
    needed = set(variables(graph.output))
    for variable, value in reversed(graph.bindings):
        if variable not in needed:
            continue
        form = integer_form(numbers, variable, value) if is_call(value) else None
        if form is not None:
            forms[variable] = form
        needed.update(variables(value) if form is None else form.reads)
    return forms, needed


@dataclass
class _Rewriter:
    """Writes a network binding by binding; maps its variables to new expressions."""

    graph: Graph
    builder: relax.BlockBuilder
    values: dict[relax.Expr, relax.Expr] = field(default_factory=dict)
    names: dict[relax.Var, str] = field(default_factory=dict)
    linear: dict[relax.Var, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.writer = Writer(self.builder)

    def of(self, expression: relax.Expr) -> relax.Expr:
        """Return an expression in terms of the new function."""
        if isinstance(expression, relax.Tuple):
            return relax.Tuple([self.of(item) for item in expression.fields])
        return self.values.get(expression, expression)

    def sums(self, product: ByteProduct) -> relax.Var:
        """Return the int32 sums of a product, under the name of its layer."""
        bare, sums = self.writer.product(product, self.of(product.x.integers))
        self._name(product.variable, bare)
        return sums

    def write(self, variable: relax.Var, value: relax.Expr, form: Form | None) -> None:
        """Write one binding, in integers where it has such a form."""
        if form is not None:
            self.values[variable] = form.write(self)
            return
        if isinstance(value, relax.Call):
            result = self._call(value)
        elif isinstance(value, relax.TupleGetItem):
            result = self.builder.emit(relax.TupleGetItem(self.of(value.tuple_value), value.index))
        else:
            result = self.of(value)
        self.values[variable] = result
        self._name(variable, result)

    def _name(self, layer: relax.Var, result: relax.Expr) -> None:
        """Give a layer's name to the variable that holds its result now."""
        if layer in self.graph.names:
            self.names[result] = self.graph.names[layer]
        if layer in self.graph.linear:
            self.linear[result] = self.graph.linear[layer]

    def _call(self, call: relax.Call) -> relax.Expr:
        if is_call(call, DEQUANTIZE):
            return self._dequantised(call)
        if is_call(call, QUANTIZE):
            return self._quantised(call)
        arguments = [self.of(argument) for argument in call.args]
        constant = folded(call, arguments)
        if constant is not None:
            return constant
        return self.builder.emit(relax.Call(call.op, arguments, call.attrs, call.ty_args))

    def _dequantised(self, call: relax.Call) -> relax.Expr:
        """Return real numbers, those that are stored as a constant."""
        stored = Stored.of(call)
        if stored is not None:
            return as_constant(stored.values())
        scale, zero = _parameters(call)
        value = self.writer.as_float(self.of(call.args[0]))
        if zero.any():
            value = self.writer.emit(relax.op.subtract, value, as_float32(zero))
        return self.writer.emit(relax.op.multiply, value, as_float32(scale))

    def _quantised(self, call: relax.Call) -> relax.Expr:
        """Return real numbers as integers."""
        x, (scale, zero) = self.of(call.args[0]), _parameters(call)
        if zero.min() < zero.max():
            raise Unsupported(f"an activation has the zero points {zero.min()} to {zero.max()}, not one")
        if scale.size > 1:
            x, scale = self.writer.emit(relax.op.divide, x, as_float32(scale)), np.ones((), np.float32)
        form = Format(np.float32(scale), int(zero.flat[0]), str(call.ty.dtype))
        return self.writer.quantised(x, form)


def _parameters(call: relax.Call) -> tuple[Array, Array]:
    """Return scale and zero point, which broadcast to the tensor; one number has no dimensions."""
    if not all(map(is_constant, call.args[1:3])):
        raise Unsupported("a scale or a zero point is computed at run time")
    rank, axis = len(shape_of(call)), int(call.attrs.axis)
    scale, zero = (along_axis(as_array(argument), rank, axis) for argument in call.args[1:3])
    scale, zero = (array.reshape(()) if array.size == 1 else array for array in (scale, zero))
    return scale.astype(np.float32), zero.astype(np.int64)
