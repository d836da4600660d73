"""Epilogues: the elementwise operators fused after a convolution, as a chain of steps.

A step names a Relax operator and the sources of its inputs.  ``scalars.SCALARS`` defines
each operator on one element, so the same tail serves as a TE stage after a dense
convolution and as an expression inside a sparse kernel.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal, TypeAlias

import numpy as np
import numpy.typing as npt
from tvm import relax, te, tirx
from tvm.ir import Expr

from dlas.lowering.graph.scalars import NAMED_ONCE, SCALARS, type_of
from dlas.stack import BFLOAT16, Array, Conv, from_bfloat16, to_bfloat16

Value = tuple[Literal["value", "operand", "number"], int | float]
"""Where an input comes from.

``("value", 0)`` is the convolution and ``("value", i)`` the result of step i,
counted from one; ``("operand", j)`` is the j-th further tensor, ``("number", v)``
a constant.
"""
Operand: TypeAlias = Array | relax.Expr
"""What a tail reads beside the convolution: an array where it is known at compile time."""
Affine: TypeAlias = npt.NDArray[np.float64] | float
"""A scale or a shift: one number a channel [k], or one for all."""


@dataclass(frozen=True)
class EpilogueStep:
    """One elementwise operator."""

    operator: str
    """Relax's name, a key of ``SCALARS``."""
    inputs: tuple[Value, ...]
    result_type: str = "float32"
    """Element type of the result."""


@dataclass(frozen=True)
class ConvolutionTail:
    """What follows a convolution in a network and is computed in its kernel."""

    steps: Sequence[EpilogueStep] = ()
    """In order."""
    operands: Sequence[Operand] = ()
    """What the steps read beside the convolution: an array or constant, or a Relax variable."""


@dataclass(frozen=True)
class Epilogue:
    """The tail of one convolution; what algorithms know as ``stack.Tail``."""

    steps: tuple[EpilogueStep, ...] = ()
    """In order; the last one computes the output."""
    operands: tuple[te.Tensor, ...] = ()
    """Further tensors that the steps read: bias, residual. Each has a shape that broadcasts to [n, k, p, q].
    """

    def __call__(self, convolved: te.Tensor) -> te.Tensor:
        """Return the finished output as TE stage ``tail``; ``convolved`` where nothing follows."""
        if not self.steps:
            return convolved

        def point(*index: Expr) -> Expr:
            return self.scalar(convolved(*index), index)

        return te.compute(convolved.shape, point, name="tail")

    def scalar(
        self, value: Expr, index: Sequence[Expr], operands: Sequence[tirx.Buffer] | None = None
    ) -> Expr:
        """Return the finished element at ``index`` (n, k, p, q) of the convolution's element ``value``.

        ``operands`` are the kernel's buffers to read instead of :attr:`operands`.
        """
        values, bound = [value], []
        read = self.operands if operands is None else operands
        beside = [_element(tensor, _broadcast(tensor.shape, index)) for tensor in read]
        for position, step in enumerate(self.steps, start=1):
            result = _apply(step, values, beside).astype(step.result_type)
            if _reads(position, self.steps) > 1:
                name = tirx.Var(f"value{position}", step.result_type)
                bound.append((name, result))
                result = name
            values.append(result)
        finished = values[-1]
        for name, result in reversed(bound):
            finished = tirx.Let(name, result, finished)
        return finished


def _apply(step: EpilogueStep, values: Sequence[Expr], beside: Sequence[Expr]) -> Expr:
    """Return a step's result for one element; numbers take the type of the other inputs."""
    typed = [_tensor_element(source, values, beside) for source in step.inputs]
    element_type = next(type_of(element) for element in typed if element is not None)
    arguments = [
        tirx.const(source[1], element_type) if element is None else element
        for source, element in zip(step.inputs, typed, strict=True)
    ]
    return SCALARS[step.operator](*arguments)


def _reads(position: int, steps: Sequence[EpilogueStep]) -> int:
    """Return how often a value is used, counting 2 where an operator's formula repeats it."""
    return sum(
        step.inputs.count(("value", position)) * (1 if step.operator in NAMED_ONCE else 2) for step in steps
    )


def _tensor_element(source: Value, values: Sequence[Expr], beside: Sequence[Expr]) -> Expr | None:
    kind, which = source
    if kind == "number":
        return None
    return (values if kind == "value" else beside)[int(which)]


def _element(tensor: te.Tensor | tirx.Buffer, index: tuple[Expr, ...]) -> Expr:
    """Return one element of a TE tensor or of a buffer."""
    return tensor(*index) if isinstance(tensor, te.Tensor) else tensor[index]


def _broadcast(shape: Sequence[Expr], index: Sequence[Expr]) -> tuple[Expr | int, ...]:
    """Return ``index`` into a tensor of ``shape`` that is broadcast as in numpy."""
    behind = index[len(index) - len(shape) :]
    return tuple(0 if int(extent) == 1 else i for extent, i in zip(shape, behind, strict=True))


def fold_affine(
    weight: Array, conv: Conv, steps: Sequence[EpilogueStep], operands: Sequence[Operand]
) -> tuple[Array, tuple[EpilogueStep, ...], tuple[Operand, ...]]:
    """Fold a tail's leading scales and shifts (batch norm, bias) into the weight and one bias.

    Parameters
    ----------
    weight : ndarray, [k, c / groups, r, s]
    operands : sequence
        An ndarray where the operand is known at compile time, else a Relax expression.

    Returns
    -------
    weight : ndarray, [k, c / groups, r, s]
    steps : tuple of EpilogueStep
        The remaining steps, after the addition of the bias where there is one.
    operands : tuple
        The operands still read, the bias [k, 1, 1] last.
    """
    scale, shift = np.ones(conv.k), np.zeros(conv.k)
    folded = 0
    while folded < len(steps):
        factor = _affine(steps[folded], folded, conv, operands)
        if factor is None or _read_later(folded, steps):
            break
        scale, shift = scale * factor[0], shift * factor[0] + factor[1]
        folded += 1
    real = from_bfloat16(weight) if conv.weight_type == BFLOAT16 else weight
    if not folded or not np.issubdtype(real.dtype, np.floating):
        return weight, tuple(steps), tuple(operands)
    scaled = (real * scale[:, None, None, None]).astype(real.dtype)
    scaled = to_bfloat16(scaled + 0) if conv.weight_type == BFLOAT16 else scaled
    bias = shift.astype(conv.accumulator_type).reshape(-1, 1, 1)
    add = EpilogueStep("relax.add", (("value", 0), ("operand", len(operands))), conv.accumulator_type)
    rest = tuple(_renumber(step, 1 - folded) for step in steps[folded:])
    return scaled, *_without_unread((add, *rest), (*operands, bias))


def _affine(
    step: EpilogueStep, position: int, conv: Conv, operands: Sequence[Operand]
) -> tuple[Affine, Affine] | None:
    """Return scale and shift [k] of a step that is affine in each channel with known coefficients."""
    if len(step.inputs) != 2 or step.inputs.count(("value", position)) != 1:
        return None
    value_first = step.inputs[0] == ("value", position)
    other = _per_channel(step.inputs[1 if value_first else 0], conv, operands)
    if other is None:
        return None
    if step.operator == "relax.add":
        return 1.0, other
    if step.operator == "relax.multiply":
        return other, 0.0
    if step.operator == "relax.subtract":
        return (1.0, -other) if value_first else (-1.0, other)
    if step.operator == "relax.divide" and value_first:
        return 1.0 / other, 0.0
    return None


def _per_channel(source: Value, conv: Conv, operands: Sequence[Operand]) -> npt.NDArray[np.float64] | None:
    """Return a known operand as one number a channel [k], or None."""
    kind, which = source
    if kind == "number":
        return np.full(conv.k, float(which))
    operand = operands[int(which)] if kind == "operand" else None
    if not isinstance(operand, np.ndarray):
        return None
    shape = (1,) * (4 - operand.ndim) + operand.shape
    if shape[0] != 1 or shape[2:] != (1, 1):
        return None
    return np.broadcast_to(operand.astype(np.float64).reshape(-1), (conv.k,))


def _without_unread(
    steps: tuple[EpilogueStep, ...], operands: tuple[Operand, ...]
) -> tuple[tuple[EpilogueStep, ...], tuple[Operand, ...]]:
    """Drop the operands that no step reads."""
    read = sorted({int(which) for step in steps for kind, which in step.inputs if kind == "operand"})
    place: dict[Value, Value] = {("operand", old): ("operand", new) for new, old in enumerate(read)}
    kept = tuple(
        replace(step, inputs=tuple(place.get(source, source) for source in step.inputs)) for step in steps
    )
    return kept, tuple(operands[old] for old in read)


def _read_later(position: int, steps: Sequence[EpilogueStep]) -> bool:
    """Whether a value is read by more than the next step."""
    return any(("value", position) in step.inputs for step in steps[position + 1 :])


def _renumber(step: EpilogueStep, by: int) -> EpilogueStep:
    inputs = tuple((kind, which + by) if kind == "value" else (kind, which) for kind, which in step.inputs)
    return replace(step, inputs=inputs)
