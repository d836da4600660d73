"""Simplify an imported network: fold constants, and turn batch norm into a scale and a shift."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np
from tvm import relax

from dlas.lowering.graph.folding import folded
from dlas.lowering.graph.graph import (
    WEIGHTED,
    Binding,
    Graph,
    as_array,
    as_constant,
    bindings_of,
    is_call,
    is_constant,
    live,
    readers_of,
    shape_of,
    variables,
)
from dlas.lowering.graph.importing import RelaxProgram
from dlas.lowering.graph.rewriter import Rewriter

RESTORED = {"maximum": relax.op.maximum, "minimum": relax.op.minimum}
"""Operators that the ONNX importer lowers to TIR, by name; as Relax operators they can join a tail."""


def simplify(program: RelaxProgram) -> Graph:
    """Return the network with weights bound, constants folded and batch norm decomposed."""
    main, owners = program.function, dict(program.owners)
    images, bindings, output = main.params[0], bindings_of(main), main.body.body
    given = Graph(images, bindings, output, {}, operators=program.operators, halves=program.halves)
    stored: dict[relax.Expr, relax.Expr] = {v: as_constant(array) for v, array in program.weights.items()}
    graph = _Simplifier(given, values=stored, owners=owners).write()
    names = _name_convolutions(graph.bindings, owners, program.convolutions)
    linear = _name_linear(graph.bindings, owners, program.linear)
    return live(replace(graph, names=names, linear=linear))


@dataclass
class _Simplifier(Rewriter):
    """Computes what is known; ``owners`` has the layer of each weight, and of the products with weights."""

    owners: dict[relax.Var, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.bound, self.readers = dict(self.graph.bindings), readers_of(self.graph)

    def call(self, variable: relax.Var, call: relax.Call) -> relax.Expr:
        """Return what a call is now, and note the layer that owns it."""
        owner = next((self.owners[v] for v in variables(call) if v in self.owners), None)
        result = self._simplified(variable, call)
        if is_constant(result) and owner is not None:
            self.owners[variable] = owner
        elif is_call(call) and call.op.name in WEIGHTED and call.args[1] in self.owners:
            self.owners[result] = self.owners[call.args[1]]
        return result

    def _simplified(self, variable: relax.Var, call: relax.Call) -> relax.Expr:
        arguments = [self.of(argument) for argument in call.args]
        if is_call(call, "relax.nn.batch_norm") and all(map(is_constant, arguments[1:5])):
            return self._batch_norm(call, arguments)
        if is_call(call, "relax.broadcast_to") and self._repeats_matrix(variable, call, arguments[0]):
            return arguments[0]
        constant = folded(call, arguments)
        if constant is not None:
            return constant
        if is_call(call, "relax.nn.adaptive_avg_pool2d") and shape_of(call)[2:] == (1, 1):
            return self.builder.emit(relax.op.mean(arguments[0], [2, 3], keepdims=True))
        if is_call(call, "relax.call_tir"):
            written, given = arguments[0].name_hint.rstrip("0123456789"), list(arguments[1].fields)
            if written in RESTORED and len(given) == 2:
                return self.builder.emit(RESTORED[written](*given))
        return self.emit_call(call, arguments)

    def _repeats_matrix(self, variable: relax.Var, call: relax.Call, matrix: relax.Expr) -> bool:
        """Whether a call repeats a weight [c, k] for products that multiply each of its copies by rows.

        PyTorch exports layers over [tokens, images, c] so: a copy for each token, a gigabyte of them.
        """
        if not (is_constant(matrix) and len(shape_of(matrix)) == 2):
            return False
        products = [self.bound.get(reader) for reader in self.readers[variable]]
        return all(
            product is not None
            and is_call(product, "relax.matmul")
            and product.args[1] == variable
            and shape_of(product.args[0])[:-2] == shape_of(call)[:-2]
            for product in products
        )

    def _batch_norm(self, call: relax.Call, arguments: list[relax.Expr]) -> relax.Tuple:
        """Return batch norm at inference as a multiplication and an addition."""
        x = arguments[0]
        gamma, beta, mean, variance = (as_array(a).astype(np.float64) for a in arguments[1:5])
        scale = (gamma if call.attrs.scale else 1.0) / np.sqrt(variance + float(call.attrs.epsilon))
        shift = (beta if call.attrs.center else 0.0) - mean * scale
        shape = (-1,) + (1,) * (len(shape_of(x)) - 1 - int(call.attrs.axis) % len(shape_of(x)))
        dtype = str(x.ty.dtype)
        scaled = self.builder.emit(relax.op.multiply(x, relax.const(scale.reshape(shape).astype(dtype))))
        shifted = self.builder.emit(relax.op.add(scaled, relax.const(shift.reshape(shape).astype(dtype))))
        return relax.Tuple([shifted, arguments[3], arguments[4]])


def _name_convolutions(
    bindings: list[Binding], owners: dict[relax.Var, str], in_order: tuple[str, ...]
) -> dict[relax.Var, str]:
    """Return a distinct name for every 2-D convolution, numbered where a layer is used twice: ``conv#2``."""
    results = [variable for variable, value in bindings if is_call(value, "relax.nn.conv2d")]
    if len(in_order) == len(results):
        owners = dict(zip(results, in_order, strict=True))
    names: dict[relax.Var, str] = {}
    seen: dict[str, int] = {}
    for position, variable in enumerate(results):
        name = owners.get(variable, f"conv{position}")
        seen[name] = seen.get(name, 0) + 1
        names[variable] = name if seen[name] == 1 else f"{name}#{seen[name]}"
    return names


def _name_linear(
    bindings: list[Binding], owners: dict[relax.Var, str], in_order: tuple[str, ...]
) -> dict[relax.Var, str]:
    """Return the names of the linear layers that are known; calls of one layer share its name."""
    results = [
        variable
        for variable, value in bindings
        if is_call(value, "relax.matmul") and is_constant(value.args[1])
    ]
    if len(in_order) == len(results):
        return dict(zip(results, in_order, strict=True))
    return {variable: owners[variable] for variable in results if variable in owners}
