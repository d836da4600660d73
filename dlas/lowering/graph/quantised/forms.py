"""Which operators between quantised numbers have a form in integers, and what it is.

Those are convolutions and linear layers with 8-bit inputs, whether their results are quantised or
not; and additions, products, averages, concatenations, maxima and reshapes whose inputs and
output are quantised.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from tvm import relax

from dlas.lowering.graph.graph import RESHAPES, as_number, shape_of
from dlas.lowering.graph.quantised.numbers import Format, QuantisedActivation, QuantisedValues
from dlas.lowering.graph.quantised.products import BYTES, LARGEST, byte_product
from dlas.lowering.graph.quantised.writing import ClipBounds, IntegerRewriter, as_float32, extent_of
from dlas.lowering.graph.scalars import QUANTIZE

MOVES = {
    *RESHAPES,
    *("relax.permute_dims", "relax.broadcast_to", "relax.strided_slice", "relax.nn.max_pool2d", "relax.max"),
}
"""Operators that pick elements of their first argument, whatever these stand for."""


@dataclass(frozen=True)
class Form:
    """How a value is computed in integers."""

    reads: Sequence[relax.Var]
    """The integers that it is computed from, in the network that was read."""
    write: Callable[[IntegerRewriter], relax.Expr]
    """Writes it, and returns the new expression."""


def integer_form(numbers: QuantisedValues, variable: relax.Var, call: relax.Call) -> Form | None:
    """Return the form of a quantisation with the operator before it, or of a product that is not quantised.

    None for all other values.
    """
    if call.op.name != QUANTIZE:
        return None if call.op.name == "relax.add" else _real_product(numbers, variable)
    written, read = Format.of(call, str(call.ty.dtype)), call.args[0]
    if written is None or not isinstance(read, relax.Var):
        return None
    value, bounds = _before_clips(numbers, read)
    clipping = (form(numbers, value, written, bounds) for form in (_product, _sum, _times, _mean, _average))
    moving = (form(numbers, read, written) for form in (_move, _concatenation))
    return next((form for forms in (clipping, moving) for form in forms if form is not None), None)


def _before_clips(numbers: QuantisedValues, value: relax.Var) -> tuple[relax.Var, ClipBounds]:
    """Return what the activations before a quantisation read, if they only clip, and their bounds."""
    low, high = -math.inf, math.inf
    while numbers.read_once(value) and (call := numbers.call(value)) is not None:
        inner = _clip(call)
        if inner is None or not isinstance(call.args[0], relax.Var):
            break
        # The outer clip comes last: an inner one that lies beyond its bounds leaves one value.
        low, high = min(max(inner.low, low), high), max(min(inner.high, high), low)
        value = call.args[0]
    return value, ClipBounds(low, high)


def _clip(call: relax.Call) -> ClipBounds | None:
    """Return the bounds of an operator that only clips."""
    fixed = {"relax.nn.relu": ClipBounds(low=0.0), "relax.nn.relu6": ClipBounds(0.0, 6.0)}
    name = call.op.name
    if name in fixed:
        return fixed[name]
    if name not in ("relax.clip", "relax.maximum", "relax.minimum"):
        return None
    known = [number for argument in call.args[1:] if (number := as_number(argument)) is not None]
    if len(known) < len(call.args) - 1:
        return None
    if name == "relax.clip":
        return ClipBounds(*known)
    return ClipBounds(low=known[0]) if name == "relax.maximum" else ClipBounds(high=known[0])


def _real_product(numbers: QuantisedValues, variable: relax.Var) -> Form | None:
    """Return a product whose result is not quantised: the real numbers of its integer sums."""
    product = byte_product(numbers, variable)
    if product is None:
        return None

    def write(to: IntegerRewriter) -> relax.Expr:
        return to.scaled(to.sums(product), product.along_outputs(product.scale))

    return Form([product.x.integers], write)


def _product(numbers: QuantisedValues, value: relax.Var, written: Format, bounds: ClipBounds) -> Form | None:
    """Return a convolution or linear layer, with its bias."""
    product = byte_product(numbers, value) if numbers.read_once(value) else None
    if product is None:
        return None
    factor = product.along_outputs(np.asarray(product.scale / written.scale, np.float32))

    def write(to: IntegerRewriter) -> relax.Expr:
        return to.requantised(to.scaled(to.sums(product), factor), written, bounds)

    return Form([product.x.integers], write)


def _operands(
    numbers: QuantisedValues, value: relax.Var, operator: str
) -> tuple[QuantisedActivation, QuantisedActivation] | None:
    """Return the quantised operands of an operator on two tensors, in bytes."""
    call = numbers.call(value, operator)
    if call is None:
        return None
    a, b = (numbers.activation(argument) for argument in call.args)
    if a is None or b is None or not {a.format.dtype, b.format.dtype} <= set(BYTES):
        return None
    return a, b


def _sum(numbers: QuantisedValues, value: relax.Var, written: Format, bounds: ClipBounds) -> Form | None:
    """Return the sum of two tensors: two multiply-adds, which start from all zero points as one number."""
    operands = _operands(numbers, value, "relax.add")
    if operands is None:
        return None
    a, b = operands
    ratio_a, ratio_b = (np.float32(x.format.scale / written.scale) for x in operands)
    # As ONNX Runtime's multiply-add: one product is rounded by itself, the other with the sum.
    second_zero = np.float64(ratio_b * np.float32(b.format.zero))
    zeros = np.float32(np.float64(ratio_a) * a.format.zero + second_zero)
    start = np.float32(np.float32(written.zero) - zeros)

    def write(to: IntegerRewriter) -> relax.Expr:
        second = to.emit(relax.op.add, to.scaled(to.of(b.integers), ratio_b), as_float32(start))
        both = to.emit(relax.op.add, to.scaled(to.of(a.integers), ratio_a), second)
        return to.rounded(both, written, bounds)

    return Form([a.integers, b.integers], write)


def _times(numbers: QuantisedValues, value: relax.Var, written: Format, bounds: ClipBounds) -> Form | None:
    """Return the product of two tensors, element by element: float32 holds products of bytes exactly."""
    operands = _operands(numbers, value, "relax.multiply")
    if operands is None:
        return None
    a, b = operands
    ratio = np.float32(a.format.scale * b.format.scale / written.scale)

    def write(to: IntegerRewriter) -> relax.Expr:
        shifted = [to.as_float(to.of(x.integers), x.format.zero) for x in operands]
        scaled = to.emit(relax.op.multiply, to.emit(relax.op.multiply, *shifted), as_float32(ratio))
        return to.rounded(to.shifted(scaled, written), written, bounds)

    return Form([a.integers, b.integers], write)


def _mean(numbers: QuantisedValues, value: relax.Var, written: Format, bounds: ClipBounds) -> Form | None:
    """Return a mean over whole axes: an integer sum."""
    call = numbers.call(value, "relax.mean")
    x = None if call is None else numbers.activation(call.args[0])
    if call is None or x is None or x.format.dtype not in BYTES or call.attrs.axis is None:
        return None
    axes = [int(axis) % len(shape_of(call.args[0])) for axis in call.attrs.axis]
    size, keeps = extent_of(call.args[0], axes), bool(call.attrs.keepdims)
    if size * max(x.format.highest, -x.format.lowest) > LARGEST:
        return None
    factor = np.float32(x.format.scale / np.float32(written.scale * np.float32(size)))

    def write(to: IntegerRewriter) -> relax.Expr:
        total = to.total(to.of(x.integers), axes, keeps)
        if x.format.zero:
            start = relax.const(-x.format.zero * size, "int32")
            total = to.emit(relax.op.add, total, start)
        return to.requantised(to.scaled(total, factor), written, bounds)

    return Form([x.integers], write)


def _average(numbers: QuantisedValues, value: relax.Var, written: Format, bounds: ClipBounds) -> Form | None:
    """Return an average over windows: float32 holds the sums of their integers exactly."""
    call = numbers.call(value, "relax.nn.avg_pool2d")
    x = None if call is None else numbers.activation(call.args[0])
    if call is None or x is None or x.format.dtype not in BYTES:
        return None
    ratio = np.float32(x.format.scale / written.scale)

    def write(to: IntegerRewriter) -> relax.Expr:
        shifted = to.as_float(to.of(x.integers), x.format.zero)
        averages = to.emit_call(call, [shifted])
        scaled = to.emit(relax.op.multiply, averages, as_float32(ratio))
        return to.rounded(to.shifted(scaled, written), written, bounds)

    return Form([x.integers], write)


def _move(numbers: QuantisedValues, value: relax.Var, written: Format) -> Form | None:
    """Return an operator that picks elements, or none: integers are picked, and then get the new scale."""
    call = numbers.call(value)
    moving = call if call is not None and call.op.name in MOVES else None
    x = numbers.activation(value if moving is None else moving.args[0])
    if x is None:
        return None

    def write(to: IntegerRewriter) -> relax.Expr:
        moved = to.of(x.integers)
        if moving is not None:
            others = [to.of(argument) for argument in moving.args[1:]]
            moved = to.emit_call(moving, [moved, *others])
        return _in_format(to, moved, x.format, written)

    return Form([x.integers], write)


def _concatenation(numbers: QuantisedValues, value: relax.Var, written: Format) -> Form | None:
    """Return a concatenation of integers, each in the scale of the output."""
    call = numbers.call(value, "relax.concat")
    if call is None or not isinstance(call.args[0], relax.Tuple):
        return None
    found = [numbers.activation(item) for item in call.args[0].fields]
    parts = [part for part in found if part is not None]
    if len(parts) < len(found):
        return None

    def write(to: IntegerRewriter) -> relax.Expr:
        changed = [_in_format(to, to.of(x.integers), x.format, written) for x in parts]
        return to.emit_call(call, [relax.Tuple(changed)])

    return Form([part.integers for part in parts], write)


def _in_format(to: IntegerRewriter, integers: relax.Expr, given: Format, written: Format) -> relax.Expr:
    """Return integers in another format; as they are where it is the same."""
    return integers if given == written else to.quantised(to.real(integers, given), written)
