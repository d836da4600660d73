"""Find the operators that can be fused into a convolution's kernel."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import tvm
from tvm import relax, tirx

from dlas.lowering.graph.graph import (
    Graph,
    Readers,
    as_number,
    is_call,
    readers_of,
    shape_of,
    unreadable,
    variables,
)
from dlas.lowering.graph.scalars import FORMULAS, QUANTIZE, SCALARS, limits_of
from dlas.lowering.kernels.tail import EpilogueStep, Value

LONGEST = 32
"""Most operators of a tail: longer ones are cut."""
MOST_FORMULAS = 2
"""Most operators of a tail that are formulas, which take long to compile."""

Values = dict[relax.Var, relax.Expr]
"""What each variable is bound to."""


@dataclass(frozen=True)
class ConvolutionInput:
    """What a convolution reads, and its padding."""

    x: relax.Expr
    padding: tuple[int, int, int, int]
    """(top, left, bottom, right)."""
    padding_value: float = 0
    absorbed: tuple[relax.Var, ...] = ()
    """The variable of a ``pad`` operator that was absorbed."""


@dataclass(frozen=True)
class Region:
    """A convolution with the operators after it that become its tail."""

    convolution: relax.Var
    """Holds the bare convolution."""
    call: relax.Call
    """The convolution itself."""
    output: relax.Var
    """Holds the tail's output; ``convolution`` where nothing follows."""
    variables: tuple[relax.Var, ...]
    """All that the kernel replaces, ``output`` last."""
    steps: tuple[EpilogueStep, ...]
    operands: tuple[relax.Expr, ...]
    """What the steps read from outside."""
    input: ConvolutionInput


def find_regions(graph: Graph) -> list[Region]:
    """Return every 2-D convolution with the longest tail that no earlier one has taken.

    A tail may branch inside, as in ``x * sigmoid(x)``, as long as all readers of its
    values, except of its output, are in the region.
    """
    values = dict(graph.bindings)
    readers = readers_of(graph)
    claimed: set[relax.Var] = set()
    regions = []
    for variable, value in graph.bindings:
        if is_call(value, "relax.nn.conv2d") and unreadable(value) is None:
            members = _grow(variable, values, readers, claimed)
            widened = _widened(members, values, readers, claimed)
            claimed.update(members, widened)
            steps, operands = _as_steps([variable, *widened, *members[1:]], values)
            read = _input(value, values, readers)
            replaced = (*read.absorbed, *widened, *members)
            regions.append(Region(variable, value, members[-1], replaced, steps, operands, read))
    return regions


def _input(call: relax.Call, values: Values, readers: Readers) -> ConvolutionInput:
    """Return what a convolution reads, with a ``pad`` operator before it absorbed.

    That operator must have no other reader, and its padding the same value as the
    convolution's own, which must be finite for JSON.
    """
    x = call.args[0]
    top, left, bottom, right = (int(side) for side in call.attrs.padding)
    alone = ConvolutionInput(x, (top, left, bottom, right))
    pad = values.get(x)
    if (
        pad is None
        or not is_call(pad, "relax.nn.pad")
        or pad.attrs.pad_mode != "constant"
        or len(readers[x]) > 1
    ):
        return alone
    *outer, above, below, before, behind = (int(width) for width in pad.attrs.pad_width)
    value = float(pad.attrs.pad_value)
    if (
        any(outer)
        or min(above, below, before, behind) < 0
        or (any(alone.padding) and value)
        or not math.isfinite(value)
    ):
        return alone
    padding = (top + above, left + before, bottom + below, right + behind)
    return ConvolutionInput(pad.args[0], padding, value if "float" in str(x.ty.dtype) else int(value), (x,))


def _grow(start: relax.Var, values: Values, readers: Readers, claimed: set[relax.Var]) -> list[relax.Var]:
    """Return the variables of the largest region from ``start``, in order, the output last.

    It ends where a value has fewest bits: a reader widens it.
    """
    order = {variable: position for position, variable in enumerate(values)}
    shape = shape_of(start)
    behind: dict[relax.Var, set[relax.Var]] = {start: set()}
    best = [start]
    waiting = set(readers[start])
    while waiting - {None} and len(behind) <= LONGEST:
        variable = min(waiting - {None}, key=order.__getitem__)
        waiting.discard(variable)
        if variable in claimed or not _elementwise(values[variable], shape):
            continue
        inside = [read for read in variables(values[variable]) if read in behind]
        before = set(inside).union(*(behind[read] for read in inside))
        members = before | {variable}
        if sum(_is_formula(values[member]) for member in members) > MOST_FORMULAS:
            continue
        behind[variable] = before
        waiting.update(readers[variable])
        closed = all(reader in members for member in behind[variable] for reader in readers[member])
        if closed and _bits(variable) <= _bits(best[-1]):
            best = sorted(members, key=order.__getitem__)
    return best


def _widened(
    members: Sequence[relax.Var], values: Values, readers: Readers, claimed: set[relax.Var]
) -> list[relax.Var]:
    """Return the variables that only widen what a region reads, such as bytes to float32, in order.

    The kernel computes them too, and reads the narrow values.
    """
    inside, added = set(members), set[relax.Var]()
    for member in members[1:]:
        for operand in variables(values[member]):
            if operand not in inside:
                added |= _wider(operand, inside | added, values, readers, claimed)
    return [variable for variable in values if variable in added]


def _wider(
    operand: relax.Var, inside: set[relax.Var], values: Values, readers: Readers, claimed: set[relax.Var]
) -> set[relax.Var]:
    """Return what computes ``operand`` from narrower values element by element, for ``inside`` alone."""
    found: set[relax.Var] = set()
    waiting = {operand}
    while waiting:
        variable = waiting.pop()
        value = values.get(variable)
        if value is None or variable in claimed or not _elementwise(value, shape_of(variable)):
            return set()
        if _is_formula(value) or any(reader not in inside | found for reader in readers[variable]):
            return set()
        found.add(variable)
        waiting.update(read for read in variables(value) if _bits(read) >= _bits(variable))
    return found


def _bits(variable: relax.Var) -> int:
    return int(tvm.DataType(str(variable.ty.dtype)).bits)


def _is_formula(value: relax.Expr) -> bool:
    return is_call(value) and value.op.name in FORMULAS


def _elementwise(value: relax.Expr, shape: tuple[int, ...]) -> bool:
    """Whether an expression computes each element of [n, k, p, q] from the same element of its inputs."""
    if not (is_call(value) and value.op.name in SCALARS and isinstance(value.ty, relax.TensorType)):
        return False
    if value.op.name == QUANTIZE and None in map(as_number, value.args[1:]):
        return False
    return shape_of(value) == shape and all(map(_readable, value.args))


def _readable(argument: relax.Expr) -> bool:
    if isinstance(argument, tirx.IntImm | tirx.FloatImm):
        return True
    return isinstance(argument.ty, relax.TensorType) and argument.ty.shape is not None


def _as_steps(
    members: Sequence[relax.Var], values: Values
) -> tuple[tuple[EpilogueStep, ...], tuple[relax.Expr, ...]]:
    """Return a region's operators as steps, and what they read from outside."""
    position = {variable: index for index, variable in enumerate(members)}
    operands: dict[relax.Expr, int] = {}

    def source(argument: relax.Expr) -> Value:
        if argument in position:
            return ("value", position[argument])
        number = as_number(argument)
        if number is not None:
            return ("number", number)
        return ("operand", operands.setdefault(argument, len(operands)))

    steps = []
    for variable in members[1:]:
        call = values[variable]
        inputs = [source(argument) for argument in call.args]
        if call.op.name == "relax.nn.leakyrelu":
            inputs.append(("number", float(call.attrs.alpha)))
        if call.op.name == QUANTIZE:
            inputs += [("number", limit) for limit in limits_of(call)]
        steps.append(EpilogueStep(call.op.name, tuple(inputs), str(call.ty.dtype)))
    return tuple(steps), tuple(operands)
