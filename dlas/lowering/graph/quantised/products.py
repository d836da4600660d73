"""Convolutions and linear layers of bytes: what they read, and the integers that their sums start from."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from tvm import relax

from dlas.lowering.graph.graph import as_array, is_constant
from dlas.lowering.graph.quantised.numbers import QuantisedActivation, QuantisedConstant, QuantisedValues
from dlas.stack import Array

CONVOLUTION, PRODUCT = "relax.nn.conv2d", "relax.matmul"
BYTES = ("uint8", "int8")
"""Types of what is multiplied as integers."""
LARGEST = 2**31 - 1
"""Largest sum that 32 bits hold."""


@dataclass(frozen=True)
class ByteProduct:
    """A convolution or a linear layer whose input and weight are quantised.

    The real result is :attr:`scale` times (the sum of the integers' products + ``bias``).
    """

    variable: relax.Var
    """Holds the float result in the network that was read."""
    call: relax.Call
    """The float operator."""
    x: QuantisedActivation
    weight: Array
    """Without its zero point."""
    weight_scale: Array
    """Float32 [k] or [1]."""
    bias: Array
    """In steps of :attr:`scale`, less what the zero point of the input adds to each sum; int32 [k]."""

    @property
    def convolution(self) -> bool:
        """Whether it is a convolution, not a linear layer."""
        return bool(self.call.op.name == CONVOLUTION)

    @property
    def scale(self) -> Array:
        """Scales of the sums, float32, [k] or [1]."""
        return np.asarray(self.x.format.scale * self.weight_scale, np.float32)

    def along_outputs(self, numbers: Array) -> Array:
        """Return one number for each output, or for all, in a shape that broadcasts to the result."""
        if numbers.size == 1:
            return numbers.reshape(())
        return numbers.reshape(-1, 1, 1) if self.convolution else numbers.reshape(-1)


def byte_product(numbers: QuantisedValues, value: relax.Expr) -> ByteProduct | None:
    """Return the product, perhaps with a bias, that a value is the real result of; None for another value."""
    call = numbers.call(value)
    if call is None:
        return None
    if _multiplies(call):
        return _read(numbers, value, call, np.zeros(1, np.float32))
    if call.op.name != "relax.add":
        return None
    first, second = call.args
    for inner, other in ((first, second), (second, first)):
        product, bias = numbers.call(inner), _stored_bias(numbers, other)
        if product is not None and _multiplies(product) and numbers.read_once(inner) and bias is not None:
            return _read(numbers, inner, product, bias)
    return None


def _multiplies(call: relax.Call) -> bool:
    return call.op.name in (CONVOLUTION, PRODUCT)


def _stored_bias(numbers: QuantisedValues, value: relax.Expr) -> QuantisedConstant | Array | None:
    """Return a stored bias, quantised or in float32."""
    return as_array(value) if is_constant(value) else numbers.stored(value)


def _read(
    numbers: QuantisedValues, variable: relax.Var, call: relax.Call, bias: QuantisedConstant | Array
) -> ByteProduct | None:
    """Return the product; None where its numbers are not bytes, or its sums could need more than 32 bits."""
    x, weight = numbers.activation(call.args[0]), numbers.stored(call.args[1])
    if x is None or weight is None or not _of_bytes(call, x, weight):
        return None
    shifted = weight.integers.astype(np.int16) - weight.zero.astype(np.int16)
    rows = shifted.reshape(len(shifted), -1) if call.op.name == CONVOLUTION else shifted.T
    scale = weight.scale.reshape(-1)
    added = _in_steps(bias, np.asarray(x.format.scale * scale, np.float32), len(rows))
    if added is None:
        return None
    total = added - x.format.zero * rows.sum(1, dtype=np.int64)
    widest = max(-x.format.lowest, x.format.highest)
    if (widest * np.abs(rows).sum(1, dtype=np.int64) + np.abs(total)).max() > LARGEST:
        return None
    limits = np.iinfo(np.int8)
    narrow = limits.min <= shifted.min() and shifted.max() <= limits.max
    weights = np.ascontiguousarray(shifted.astype(np.int8) if narrow else shifted)
    return ByteProduct(variable, call, x, weights, scale, total.astype(np.int32))


def _of_bytes(call: relax.Call, x: QuantisedActivation, weight: QuantisedConstant) -> bool:
    """Whether input and weight are bytes in the usual order, and each output has one scale."""
    if x.format.dtype not in BYTES or weight.integers.dtype.name not in BYTES:
        return False
    if call.op.name == PRODUCT:
        return weight.integers.ndim == 2 and weight.scale.shape[0] == weight.zero.shape[0] == 1
    layouts = (call.attrs.data_layout, call.attrs.kernel_layout, call.attrs.out_layout)
    return layouts == ("NCHW", "OIHW", "NCHW") and weight.scale[0].size == weight.zero[0].size == 1


def _in_steps(bias: QuantisedConstant | Array, scale: Array, outputs: int) -> Array | None:
    """Return a bias [k] in whole steps of ``scale``; None where it is not one number an output."""
    values = bias.values() if isinstance(bias, QuantisedConstant) else bias
    if values.size not in (1, outputs):
        return None
    if isinstance(bias, QuantisedConstant):
        own, asked = (np.broadcast_to(a.reshape(-1), (outputs,)) for a in (bias.scale, scale))
        if np.array_equal(own, asked):
            steps = (bias.integers.astype(np.int64) - bias.zero).reshape(-1)
            return np.broadcast_to(steps, (outputs,))
    steps = np.rint(values.reshape(-1).astype(np.float64) / scale)
    return np.broadcast_to(np.clip(steps, -LARGEST - 1, LARGEST).astype(np.int64), (outputs,))
