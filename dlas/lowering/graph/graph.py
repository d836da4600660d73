"""A network as a list of Relax bindings, and the questions that every pass asks of it."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field, replace

import numpy as np
import tvm
import tvm_ffi
from tvm import relax, tirx

from dlas.stack import Array

OPAQUE = 8
"""TVM's operator pattern ``kOpaque``: not to be fused with anything."""
FUSES_BEHIND = 4
"""TVM's operator pattern ``kOutEWiseFusable``: elementwise operators may be fused after it."""
WEIGHTED = ("relax.nn.conv2d", "relax.matmul")
"""Operators whose second argument may be a layer's weight."""
RESHAPES = {f"relax.{name}" for name in ("reshape", "flatten", "nn.batch_flatten", "squeeze", "expand_dims")}
"""Operators that keep all elements in their order."""
SHARED = ("float16", "float32")
"""Types that numpy and TVM share without copies; ``relax.const`` narrows wider ones."""

Binding = tuple[relax.Var, relax.Expr]
"""A variable and the expression that it holds."""
Readers = dict[relax.Var, list[relax.Var | None]]
"""The variables whose expressions read a variable; None for the network's output."""


@dataclass
class Graph:
    """A network as a list of Relax bindings, constants in place."""

    images: relax.Var
    """The input, [n, c, h, w]."""
    bindings: list[Binding]
    """In order, without dead code."""
    output: relax.Expr
    names: dict[relax.Var, str]
    """Layer names of the 2-D convolutions, by the variable that holds the result."""
    linear: dict[relax.Var, str] = field(default_factory=dict)
    """Layer names of products with a stored matrix, by the variable that holds the result."""
    operators: dict[tvm.ir.GlobalVar, tirx.PrimFunc] = field(default_factory=dict)
    """PrimFuncs that bindings call, by global variable."""
    halves: str | None = None
    """Type of 16 bits that kernels are to store numbers in, ``float16`` or ``bfloat16``; bindings have them
    in float32.
    """
    quantised: bool = False
    """Whether operators on quantised numbers have been rewritten to integers."""


def live(graph: Graph) -> Graph:
    """Return a network without the bindings that its output does not need."""
    needed = set(variables(graph.output))
    kept = []
    for variable, value in reversed(graph.bindings):
        if variable in needed:
            needed.update(variables(value))
            kept.append((variable, value))
    return replace(graph, bindings=kept[::-1])


def readers_of(graph: Graph) -> Readers:
    """Return the readers of each variable, in order; None stands for the graph's output."""
    readers: Readers = defaultdict(list)
    for variable, value in graph.bindings:
        for read in variables(value):
            readers[read].append(variable)
    for read in variables(graph.output):
        readers[read].append(None)
    return readers


def bindings_of(function: relax.Function) -> list[Binding]:
    """Return the bindings of a function in order."""
    return [(binding.var, binding.value) for block in function.body.blocks for binding in block.bindings]


def variables(expression: relax.Expr) -> list[relax.Var]:
    """Return the variables that an expression of a binding reads, each once."""
    return list(relax.analysis.free_vars(expression))


def shape_of(expression: relax.Expr) -> tuple[int, ...]:
    """Return the static shape of a Relax tensor."""
    return tuple(int(extent) for extent in expression.ty.shape)


def is_call(expression: relax.Expr, operator: str | None = None) -> bool:
    """Whether ``expression`` calls a Relax operator, or the one named."""
    if not (isinstance(expression, relax.Call) and isinstance(expression.op, tvm.ir.Op)):
        return False
    return operator is None or expression.op.name == operator


def called_kernel(value: relax.Expr) -> str | None:
    """Return the name of the PrimFunc that an expression calls, None where it calls none."""
    return str(value.args[0].name_hint) if is_call(value, "relax.call_tir") else None


def unreadable(call: relax.Call) -> str | None:
    """Return why a call of ``relax.nn.conv2d`` is left to TVM, or None."""
    attributes = call.attrs
    layouts = (attributes.data_layout, attributes.kernel_layout, attributes.out_layout)
    if layouts != ("NCHW", "OIHW", "NCHW"):
        return f"layouts {', '.join(layouts)} are left to TVM"
    if not is_constant(call.args[1]):
        return "the weight is computed at run time"
    return None


def is_constant(expression: relax.Expr) -> bool:
    """Whether ``expression`` is a constant tensor."""
    return isinstance(expression, tvm.ir.GenericConst) and isinstance(expression.ty, relax.TensorType)


def as_number(argument: relax.Expr) -> float | None:
    """Return the value of a scalar or of a constant with one element; None for a tensor."""
    if isinstance(argument, tirx.IntImm | tirx.FloatImm):
        return float(argument.value)
    if is_constant(argument) and as_array(argument).size == 1:
        return float(as_array(argument).reshape(()))
    return None


def as_array(constant: tvm.ir.GenericConst) -> Array:
    """Return a Relax constant's value, read-only: it may share the constant's memory."""
    value = constant.value
    return np.from_dlpack(value) if str(value.dtype) in SHARED else np.asarray(value.numpy())


def as_constant(array: Array) -> tvm.ir.GenericConst:
    """Return an array as a Relax constant that shares its memory, in any order, where possible."""
    if array.dtype.name in SHARED and array.flags.writeable:
        return relax.const(tvm_ffi.from_dlpack(array, require_contiguous=False))
    return relax.const(np.ascontiguousarray(array))
