"""Simplify an imported network: fold constants, and turn batch norm into a scale and a shift.

TVM's own ``FoldConstant`` compiles a kernel for every constant expression,
which takes tens of seconds on a deep network; numpy takes milliseconds.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np
import tvm
from tvm import relax, tirx

from dlas.lowering.graph.importing import Imported, as_array, as_constant
from dlas.stack import Array

OPAQUE = 8
"""TVM's operator pattern ``kOpaque``: not to be fused with anything."""
FUSES_BEHIND = 4
"""TVM's operator pattern ``kOutEWiseFusable``: elementwise operators may be fused after it."""

Binding = tuple[relax.Var, relax.Expr]
"""A variable and the expression that it holds."""


@dataclass
class Graph:
    """A network as a list of Relax bindings, constants in place.

    Parameters
    ----------
    images : relax.Var
        The input, [n, c, h, w].
    bindings : list of (relax.Var, relax.Expr)
        In order, without dead code.
    output : relax.Expr
    names : dict
        Layer names of the 2-D convolutions, by the variable that holds the result.
    linear : dict
        Layer names of products with a stored matrix, by the variable that holds the result.
    operators : dict
        PrimFuncs that bindings call, by global variable.
    halves : str or None
        Type of 16 bits that kernels are to store numbers in, ``float16`` or ``bfloat16``; bindings have
        them in float32.
    """

    images: relax.Var
    bindings: list[Binding]
    output: relax.Expr
    names: dict[relax.Var, str]
    linear: dict[relax.Var, str] = field(default_factory=dict)
    operators: dict[tvm.ir.GlobalVar, tirx.PrimFunc] = field(default_factory=dict)
    halves: str | None = None


def shape_of(expression: relax.Expr) -> tuple[int, ...]:
    """Return the static shape of a Relax tensor."""
    return tuple(int(extent) for extent in expression.ty.shape)


def is_call(expression: relax.Expr, operator: str | None = None) -> bool:
    """Whether ``expression`` calls a Relax operator, or the one named."""
    if not (isinstance(expression, relax.Call) and isinstance(expression.op, tvm.ir.Op)):
        return False
    return operator is None or expression.op.name == operator


def is_constant(expression: relax.Expr) -> bool:
    """Whether ``expression`` is a constant tensor."""
    return isinstance(expression, tvm.ir.GenericConst) and isinstance(expression.ty, relax.TensorType)


def variables(expression: relax.Expr) -> list[relax.Var]:
    """Return the variables that an expression of a binding reads, each once."""
    return list(relax.analysis.free_vars(expression))


Readers = dict[relax.Var, list[relax.Var | None]]
"""The variables whose expressions read a variable; None for the network's output."""


def readers_of(graph: Graph) -> Readers:
    """Return the readers of each variable, in order; None stands for the graph's output."""
    readers: Readers = defaultdict(list)
    for variable, value in graph.bindings:
        for read in variables(value):
            readers[read].append(variable)
    for read in variables(graph.output):
        readers[read].append(None)
    return readers


def as_number(argument: relax.Expr) -> float | None:
    """Return the value of a scalar or of a constant with one element; None for a tensor."""
    if isinstance(argument, tirx.IntImm | tirx.FloatImm):
        return float(argument.value)
    if is_constant(argument) and as_array(argument).size == 1:
        return float(as_array(argument).reshape(()))
    return None


def bindings_of(function: relax.Function) -> list[Binding]:
    """Return the bindings of a function in order."""
    return [(binding.var, binding.value) for block in function.body.blocks for binding in block.bindings]


def _permute(call: relax.Call, x: Array) -> Array:
    axes = call.attrs.axes
    return np.transpose(x, None if axes is None else [int(axis) for axis in axes])


def _typed(function: Callable[..., Array]) -> Callable[..., Array]:
    """Wrap a numpy function so that its result keeps the type of its first argument."""
    return lambda call, *arrays: np.asarray(function(*arrays)).astype(arrays[0].dtype)


NUMPY: dict[str, Callable[..., Array]] = {
    "relax.permute_dims": _permute,
    "relax.reshape": lambda call, x, *_: x.reshape(shape_of(call)),
    "relax.expand_dims": lambda call, x: x.reshape(shape_of(call)),
    "relax.squeeze": lambda call, x: x.reshape(shape_of(call)),
    "relax.flatten": lambda call, x: x.reshape(shape_of(call)),
    "relax.broadcast_to": lambda call, x, *_: np.broadcast_to(x, shape_of(call)),
    "relax.astype": lambda call, x: x.astype(str(call.ty.dtype)),
    "relax.add": _typed(np.add),
    "relax.subtract": _typed(np.subtract),
    "relax.multiply": _typed(np.multiply),
    "relax.divide": _typed(np.divide),
    "relax.sqrt": _typed(np.sqrt),
    "relax.rsqrt": _typed(lambda x: 1 / np.sqrt(x)),
    "relax.exp": _typed(np.exp),
    "relax.negative": _typed(np.negative),
    "relax.isnan": lambda call, x: np.isnan(x),
    "relax.where": lambda call, condition, x, y: np.asarray(np.where(condition, x, y), x.dtype),
}
"""How numpy evaluates an operator on constants; other operators are not folded."""
WEIGHTED = ("relax.nn.conv2d", "relax.matmul")
"""Operators whose second argument may be a layer's weight."""
RESHAPES = {f"relax.{name}" for name in ("reshape", "flatten", "nn.batch_flatten", "squeeze", "expand_dims")}
"""Operators that keep all elements in their order."""
RESTORED = {"maximum": relax.op.maximum, "minimum": relax.op.minimum}
"""Operators that the ONNX importer lowers to TIR, by name; as Relax operators they can join a tail."""


def simplify(imported: Imported) -> Graph:
    """Return the network with weights bound, constants folded and batch norm decomposed."""
    images = imported.function.params[0]
    builder = relax.BlockBuilder()
    with builder.function("main", [images]):
        rewriter = _Rewriter(builder, imported)
        for block in imported.function.body.blocks:
            for binding in block.bindings:
                rewriter.visit(binding)
        output = rewriter.of(imported.function.body.body)
        builder.emit_func_output(output)
    bindings = bindings_of(builder.get()["main"])
    names = _name_convolutions(bindings, rewriter.owners, imported.convolutions)
    linear = _name_linear(bindings, rewriter.owners, imported.linear)
    found = live(bindings, output)
    return Graph(images, found, output, names, linear, imported.operators, imported.halves)


@dataclass
class _Rewriter:
    """Rewrites a function in one pass; maps its variables to new expressions."""

    builder: relax.BlockBuilder
    imported: Imported
    values: dict[relax.Var, relax.Expr] = field(default_factory=dict)
    owners: dict[relax.Var, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for variable, array in self.imported.weights.items():
            self.values[variable] = as_constant(array)
        self.owners = dict(self.imported.owners)

    def of(self, expression: relax.Expr) -> relax.Expr:
        """Return an expression in terms of the rewritten function."""
        if isinstance(expression, relax.Tuple):
            return relax.Tuple([self.of(item) for item in expression.fields])
        return self.values.get(expression, expression)

    def visit(self, binding: relax.VarBinding) -> None:
        """Rewrite one binding."""
        value = binding.value
        if isinstance(value, relax.Call):
            owner = next((self.owners[v] for v in variables(value) if v in self.owners), None)
            result = self._call(value)
            if is_constant(result) and owner is not None:
                self.owners[binding.var] = owner
            elif is_call(value) and value.op.name in WEIGHTED and value.args[1] in self.owners:
                self.owners[result] = self.owners[value.args[1]]
        elif isinstance(value, relax.TupleGetItem):
            held = self.of(value.tuple_value)
            is_tuple = isinstance(held, relax.Tuple)
            result = (
                held.fields[value.index]
                if is_tuple
                else self.builder.emit(relax.TupleGetItem(held, value.index))
            )
        else:
            result = self.of(value)
        self.values[binding.var] = result

    def _call(self, call: relax.Call) -> relax.Expr:
        arguments = [self.of(argument) for argument in call.args]
        if is_call(call, "relax.nn.batch_norm") and all(map(is_constant, arguments[1:5])):
            return self._batch_norm(call, arguments)
        constant = folded(call, arguments)
        if constant is not None:
            return constant
        if is_call(call, "relax.nn.adaptive_avg_pool2d") and shape_of(call)[2:] == (1, 1):
            return self.builder.emit(relax.op.mean(arguments[0], [2, 3], keepdims=True))
        if is_call(call, "relax.call_tir"):
            written, given = arguments[0].name_hint.rstrip("0123456789"), list(arguments[1].fields)
            if written in RESTORED and len(given) == 2:
                return self.builder.emit(RESTORED[written](*given))
        return self.builder.emit(relax.Call(call.op, arguments, call.attrs, call.ty_args))

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


def folded(call: relax.Call, arguments: Sequence[relax.Expr]) -> tvm.ir.GenericConst | None:
    """Return what ``call`` computes of ``arguments``, if numpy can; None where one is not constant."""
    if not (is_call(call) and call.op.name in NUMPY):
        return None
    arrays = [as_array(argument) for argument in arguments if is_constant(argument)]
    others = [a for a in arguments if not is_constant(a) and not isinstance(a, relax.ShapeExpr)]
    return as_constant(NUMPY[call.op.name](call, *arrays)) if arrays and not others else None


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


def live(bindings: list[Binding], output: relax.Expr) -> list[Binding]:
    """Return the bindings that the output needs."""
    needed = set(variables(output))
    kept = []
    for variable, value in reversed(bindings):
        if variable in needed:
            needed.update(variables(value))
            kept.append((variable, value))
    return kept[::-1]
