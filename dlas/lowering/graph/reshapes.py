"""Compute linear layers, and the elementwise operators behind them, on rows [m, k].

Networks have linear layers of any number of dimensions, some of them exported as matrix
products between two reshapes.  Here all are of two dimensions, as are the activations and
residual additions behind them, so that these can be fused.  A reshape costs nothing.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

from tvm import relax, tirx

from dlas.lowering.graph.scalars import SCALARS
from dlas.lowering.graph.simplify import Binding, Graph, is_call, is_constant, live, shape_of
from dlas.stack import BFLOAT16_BITS

PRODUCTS = {
    ("float32", "float32", "float32"),
    *((kind, kind, "float32") for kind in ("float16", BFLOAT16_BITS)),
    *((x, weight, "int32") for x in ("uint8", "int8") for weight in ("int8", "int16")),
}
"""Types of a linear layer's input, weight and output."""


def in_rows(graph: Graph) -> Graph:
    """Return the network with linear layers and what follows them on rows."""
    rewriter, builder = _Rewriter(), relax.BlockBuilder()
    written = (each for binding in graph.bindings for each in rewriter.rewritten(*binding))
    bindings = [(variable, builder.normalize(value)) for variable, value in written]
    output = rewriter.of(graph.output)
    linear = {rows: graph.linear[layer] for rows, layer in rewriter.rows.items() if layer in graph.linear}
    return replace(graph, bindings=live(bindings, output), output=output, linear=linear)


def multiplies_rows(call: relax.Expr) -> bool:
    """Whether a call multiplies rows [..., c] by a constant matrix [c, k], in types that have kernels."""
    if not (is_call(call, "relax.matmul") and is_constant(call.args[1])):
        return False
    x, weight = call.args
    types = tuple(str(value.ty.dtype) for value in (x, weight, call))
    return len(shape_of(x)) >= 2 == len(shape_of(weight)) and types in PRODUCTS


@dataclass
class _Rewriter:
    """Rewrites bindings in order.

    Parameters
    ----------
    origins : dict
        By variable, what it is a reshape of.
    rows : dict
        Variables [m, k] that linear layers and operators behind them have computed, each with the
        variable whose value it holds.
    same : dict
        By variable, another that is equal.
    """

    origins: dict[relax.Expr, relax.Expr] = field(default_factory=dict)
    rows: dict[relax.Expr, relax.Var] = field(default_factory=dict)
    same: dict[relax.Expr, relax.Expr] = field(default_factory=dict)

    def of(self, expression: relax.Expr) -> relax.Expr:
        """Return an expression in terms of the variables that are left."""
        if isinstance(expression, relax.Tuple):
            return relax.Tuple([self.of(item) for item in expression.fields])
        return self.same.get(expression, expression)

    def rewritten(self, variable: relax.Var, value: relax.Expr) -> Iterator[Binding]:
        """Yield the bindings that take the place of one."""
        if isinstance(value, relax.TupleGetItem):
            yield variable, relax.TupleGetItem(self.of(value.tuple_value), value.index)
        elif isinstance(value, relax.Call):
            yield from self._call(variable, value, [self.of(argument) for argument in value.args])
        else:
            yield variable, self.of(value)

    def _call(
        self, variable: relax.Var, call: relax.Call, arguments: Sequence[relax.Expr]
    ) -> Iterator[Binding]:
        if is_call(call, "relax.reshape"):
            yield from self._reshape(variable, arguments[0])
        elif multiplies_rows(call):
            yield from self._on_rows(variable, call, [arguments[0]], arguments[1:])
        elif self._follows_rows(call, arguments):
            yield from self._on_rows(variable, call, arguments, [])
        else:
            yield variable, relax.Call(call.op, arguments, call.attrs, call.ty_args)

    def _reshape(self, variable: relax.Var, x: relax.Expr) -> Iterator[Binding]:
        """Yield the reshape of ``x`` into ``variable``; nothing where that changes nothing."""
        origin = self.origins.get(x, x)
        if shape_of(origin) == shape_of(variable):
            self.same[variable] = origin
            return
        self.origins[variable] = origin
        yield variable, relax.op.reshape(origin, shape_of(variable))

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
    ) -> Iterator[Binding]:
        """Yield a call of ``arguments`` as rows, and ``others`` as they are, with its result's reshape."""
        inner = []
        for argument in arguments:
            if _is_row(argument):
                inner.append(argument)
                continue
            given = relax.Var(f"{variable.name}_given", _in_rows(argument))
            yield from self._reshape(given, argument)
            inner.append(self.of(given))
        rows = relax.Var(f"{variable.name}_rows", _in_rows(variable))
        self.rows[rows] = variable
        yield rows, relax.Call(call.op, [*inner, *others], call.attrs)
        yield from self._reshape(variable, rows)


def _in_rows(value: relax.Expr) -> relax.TensorType:
    """Return the type of a tensor's rows."""
    *lead, last = shape_of(value)
    return relax.TensorType((math.prod(lead), last), str(value.ty.dtype))


def _is_row(operand: relax.Expr) -> bool:
    """Whether an operand is broadcast to all rows alike: a number, or one row."""
    if isinstance(operand, tirx.IntImm | tirx.FloatImm):
        return True
    return len(shape_of(operand)) <= 1
