"""What all passes have in common that write a network anew, binding by binding."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from tvm import relax

from dlas.lowering.graph.graph import Graph, bindings_of


@dataclass
class Rewriter:
    """Writes a network anew; maps its variables to new expressions.

    As it is, it copies the network.  A pass overrides :meth:`call`, and where it needs to
    :meth:`of` or :meth:`visit`.  Layers keep their names.
    """

    graph: Graph
    """The network that is read."""
    builder: relax.BlockBuilder = field(default_factory=relax.BlockBuilder)
    """Receives the new bindings."""
    values: dict[relax.Expr, relax.Expr] = field(default_factory=dict)
    """The new expression of each variable, and of constants that are replaced."""
    names: dict[relax.Var, str] = field(default_factory=dict)
    linear: dict[relax.Var, str] = field(default_factory=dict)
    """As those of :class:`Graph`, by the new variables."""

    def write(self) -> Graph:
        """Return the new network, with its dead code."""
        with self.builder.function("main", [self.graph.images]):
            self.visit_all()
            output = self.of(self.graph.output)
            self.builder.emit_func_output(output)
        bindings = bindings_of(self.builder.get()["main"])
        return replace(self.graph, bindings=bindings, output=output, names=self.names, linear=self.linear)

    def visit_all(self) -> None:
        """Write all bindings in order."""
        for variable, value in self.graph.bindings:
            self.visit(variable, value)

    def visit(self, variable: relax.Var, value: relax.Expr) -> None:
        """Write one binding."""
        if isinstance(value, relax.Call):
            self.values[variable] = self.call(variable, value)
        elif isinstance(value, relax.TupleGetItem):
            self.values[variable] = self.item(value)
        else:
            self.values[variable] = self.of(value)
        self.name(variable, self.values[variable])

    def call(self, variable: relax.Var, call: relax.Call) -> relax.Expr:
        """Return the new expression of ``variable``, which holds ``call``."""
        return self.emit_call(call, [self.of(argument) for argument in call.args])

    def emit_call(self, call: relax.Call, arguments: Sequence[relax.Expr]) -> relax.Var:
        """Return a new variable that holds a call of the same operator with other arguments."""
        return self.builder.emit(relax.Call(call.op, arguments, call.attrs, call.ty_args))

    def item(self, item: relax.TupleGetItem) -> relax.Expr:
        """Return a field of a tuple in terms of the new network."""
        fields = self.of(item.tuple_value)
        if isinstance(fields, relax.Tuple):
            return fields.fields[item.index]
        return self.builder.emit(relax.TupleGetItem(fields, item.index))

    def of(self, expression: relax.Expr) -> relax.Expr:
        """Return an expression in terms of the new network."""
        if isinstance(expression, relax.Tuple):
            return relax.Tuple([self.of(item) for item in expression.fields])
        return self.values.get(expression, expression)

    def name(self, layer: relax.Var, result: relax.Expr) -> None:
        """Give a layer's name to the variable that holds its result now."""
        if layer in self.graph.names:
            self.names[result] = self.graph.names[layer]
        if layer in self.graph.linear:
            self.linear[result] = self.graph.linear[layer]
