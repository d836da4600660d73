"""Rewrite a quantised network, whose numbers are dequantised before every operator, to integers.

ONNX writes a quantised network as float operators between ``DequantizeLinear`` and
``QuantizeLinear``.  Operators that have a form in integers get it
(:mod:`dlas.lowering.graph.quantised.forms`).
What has none, a sigmoid for example, is computed in float32 between the same quantised numbers.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace

import numpy as np
from tvm import relax

from dlas.errors import Unsupported
from dlas.lowering.graph.folding import folded
from dlas.lowering.graph.graph import (
    Graph,
    as_array,
    as_constant,
    is_call,
    is_constant,
    live,
    shape_of,
    variables,
)
from dlas.lowering.graph.quantised.forms import Form, integer_form
from dlas.lowering.graph.quantised.numbers import (
    DEQUANTIZE,
    Format,
    QuantisedConstant,
    QuantisedValues,
    along_axis,
)
from dlas.lowering.graph.quantised.writing import IntegerRewriter, as_float32
from dlas.lowering.graph.scalars import QUANTIZE
from dlas.stack import Array


def in_integers(graph: Graph) -> Graph:
    """Return a network with its quantised operators in integers; any other as it is.

    Raises
    ------
    Unsupported
        If a scale or a zero point is computed at run time, or an activation has several zero points.
    """
    quantised = any(is_call(value, QUANTIZE) or is_call(value, DEQUANTIZE) for _, value in graph.bindings)
    if not quantised or graph.halves is not None:
        return graph
    forms, needed = _plan(graph)
    written = _QuantisedRewriter(graph, forms=forms, needed=needed).write()
    return replace(live(written), quantised=True)


def _plan(graph: Graph) -> tuple[dict[relax.Var, Form], set[relax.Var]]:
    """Return the forms in integers, and all variables that are still read with them."""
    numbers, forms = QuantisedValues(graph), {}
    needed = set(variables(graph.output))
    for variable, value in reversed(graph.bindings):
        if variable not in needed:
            continue
        form = integer_form(numbers, variable, value) if is_call(value) else None
        if form is not None:
            forms[variable] = form
        needed.update(variables(value) if form is None else form.reads)
    return forms, needed


@dataclass(kw_only=True)
class _QuantisedRewriter(IntegerRewriter):
    """Writes the variables that are ``needed``, in integers where these have ``forms``."""

    forms: Mapping[relax.Var, Form]
    needed: Collection[relax.Var]

    def visit(self, variable: relax.Var, value: relax.Expr) -> None:
        """Write one binding, in integers where it has such a form."""
        if variable in self.forms:
            self.values[variable] = self.forms[variable].write(self)
        elif variable in self.needed:
            super().visit(variable, value)

    def call(self, variable: relax.Var, call: relax.Call) -> relax.Expr:
        """Return a call in float32, or a change between real numbers and integers."""
        if is_call(call, DEQUANTIZE):
            return self._real_numbers(call)
        if is_call(call, QUANTIZE):
            return self._integers(call)
        arguments = [self.of(argument) for argument in call.args]
        constant = folded(call, arguments)
        return self.emit_call(call, arguments) if constant is None else constant

    def _real_numbers(self, call: relax.Call) -> relax.Expr:
        """Return real numbers, those that are stored as a constant."""
        stored = QuantisedConstant.of(call)
        if stored is not None:
            return as_constant(stored.values())
        scale, zero = _parameters(call)
        value = self.as_float(self.of(call.args[0]))
        if zero.any():
            value = self.emit(relax.op.subtract, value, as_float32(zero))
        return self.emit(relax.op.multiply, value, as_float32(scale))

    def _integers(self, call: relax.Call) -> relax.Expr:
        """Return real numbers as integers."""
        x, (scale, zero) = self.of(call.args[0]), _parameters(call)
        if zero.min() < zero.max():
            raise Unsupported(f"an activation has the zero points {zero.min()} to {zero.max()}, not one")
        if scale.size > 1:
            x, scale = self.emit(relax.op.divide, x, as_float32(scale)), np.ones((), np.float32)
        form = Format(np.float32(scale), int(zero.flat[0]), str(call.ty.dtype))
        return self.quantised(x, form)


def _parameters(call: relax.Call) -> tuple[Array, Array]:
    """Return scale and zero point, which broadcast to the tensor; one number has no dimensions."""
    if not all(map(is_constant, call.args[1:3])):
        raise Unsupported("a scale or a zero point is computed at run time")
    rank, axis = len(shape_of(call)), int(call.attrs.axis)
    scale, zero = (along_axis(as_array(argument), rank, axis) for argument in call.args[1:3])
    scale, zero = (array.reshape(()) if array.size == 1 else array for array in (scale, zero))
    return scale.astype(np.float32), zero.astype(np.int64)
