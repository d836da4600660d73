"""Write integer arithmetic in Relax, rounded as ONNX Runtime rounds it.

Integers are multiplied and added in 32 bits.  Only the change from one scale to another is
float32: a factor for each output, computed when the network is compiled, one product, and
``relax.quantize``, which takes the nearest integer, the even one of two, and clips it to the
type (:func:`dlas.lowering.graph.scalars.nearest_integer`).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from tvm import relax

from dlas.lowering.graph.graph import as_constant, shape_of
from dlas.lowering.graph.quantised.numbers import Format
from dlas.lowering.graph.quantised.products import ByteProduct
from dlas.lowering.graph.rewriter import Rewriter
from dlas.stack import Array


@dataclass(frozen=True)
class ClipBounds:
    """An activation between an operator and its quantisation: real numbers are clipped."""

    low: float = -math.inf
    high: float = math.inf


@dataclass
class IntegerRewriter(Rewriter):
    """Writes a network anew, with arithmetic of integers."""

    def emit(self, operator: Callable[..., relax.Expr], *arguments: Any, **options: Any) -> relax.Var:
        """Return a new variable that holds an operator's result."""
        return self.builder.emit(operator(*arguments, **options))

    def sums(self, product: ByteProduct) -> relax.Var:
        """Return the int32 sums of a product; its layer names those without what they start from."""
        x, weight, call = self.of(product.x.integers), relax.const(product.weight), product.call
        if product.convolution:
            bare = self._convolution(call, x, weight, product.x.format.zero)
        else:
            bare = self.emit(relax.op.matmul, x, weight, out_dtype="int32")
        self.name(product.variable, bare)
        if not product.bias.any():
            return bare
        bias = np.ascontiguousarray(product.along_outputs(product.bias))
        return self.emit(relax.op.add, bare, relax.const(bias))

    def _convolution(self, call: relax.Call, x: relax.Expr, weight: relax.Expr, zero: int) -> relax.Var:
        """Return a convolution of integers, whose border is the input's zero point."""
        attributes = call.attrs
        padding = [int(side) for side in attributes.padding]
        if zero and any(padding):
            top, left, bottom, right = padding
            x = self.emit(relax.op.nn.pad, x, [0, 0, 0, 0, top, bottom, left, right], pad_value=zero)
            padding = [0, 0, 0, 0]
        return self.emit(
            relax.op.nn.conv2d,
            *(x, weight),
            strides=[int(step) for step in attributes.strides],
            padding=padding,
            dilation=[int(step) for step in attributes.dilation],
            groups=int(attributes.groups),
            out_dtype="int32",
        )

    def scaled(self, integers: relax.Expr, factor: Array | np.floating[Any]) -> relax.Var:
        """Return integers times a factor in float32."""
        return self.emit(relax.op.multiply, self.as_float(integers), as_float32(factor))

    def as_float(self, integers: relax.Expr, zero: int = 0) -> relax.Var:
        """Return integers less their zero point in float32, which is exact."""
        value = self.emit(relax.op.astype, integers, "float32")
        return self.emit(relax.op.subtract, value, as_float32(zero)) if zero else value

    def real(self, integers: relax.Expr, given: Format) -> relax.Var:
        """Return the real numbers that integers stand for, in float32."""
        return self.emit(relax.op.multiply, self.as_float(integers, given.zero), as_float32(given.scale))

    def quantised(self, values: relax.Expr, written: Format) -> relax.Var:
        """Return real numbers as integers."""
        return self._nearest(values, written.scale, written.zero, written)

    def requantised(self, values: relax.Expr, written: Format, bounds: ClipBounds) -> relax.Var:
        """Return values in steps of the output as integers: the zero point is added after rounding."""
        values = self._bounded(values, written, bounds, 0)
        return self._nearest(values, np.float32(1), written.zero, written)

    def rounded(self, values: relax.Expr, written: Format, bounds: ClipBounds) -> relax.Var:
        """Return values in steps of the output, which include its zero point, as integers."""
        values = self._bounded(values, written, bounds, written.zero)
        return self._nearest(values, np.float32(1), 0, written)

    def shifted(self, values: relax.Expr, written: Format) -> relax.Expr:
        """Return values in steps of the output plus its zero point, the sum rounded apart from products.

        The values are clipped before, so that no multiply-add, which rounds once, takes
        the place of product and sum.
        """
        if not written.zero:
            return values
        clipped = self.emit(relax.op.maximum, values, as_float32(written.lowest - written.zero))
        return self.emit(relax.op.add, clipped, as_float32(written.zero))

    def _bounded(self, values: relax.Expr, written: Format, bounds: ClipBounds, zero: int) -> relax.Expr:
        """Return values clipped to ``bounds``, where the type does not clip them anyway."""
        low, high = (bound / float(written.scale) + zero for bound in (bounds.low, bounds.high))
        if low > written.lowest - written.zero + zero:
            values = self.emit(relax.op.maximum, values, as_float32(low))
        if high < written.highest - written.zero + zero:
            values = self.emit(relax.op.minimum, values, as_float32(high))
        return values

    def _nearest(self, values: relax.Expr, scale: np.float32, zero: int, written: Format) -> relax.Var:
        number = relax.const(zero, written.dtype)
        return self.emit(relax.op.quantize, values, as_float32(scale), number, out_dtype=written.dtype)

    def total(self, integers: relax.Expr, axes: list[int], keeps: bool) -> relax.Var:
        """Return sums of integers over ``axes`` in int32; with ``keeps`` these stay with extent 1."""
        wide = self.emit(relax.op.astype, integers, "int32")
        return self.emit(relax.op.sum, wide, axes, keepdims=keeps)


def as_float32(number: Array | np.floating[Any] | float) -> relax.Expr:
    """Return a number, or an array, as a constant in float32."""
    array = np.asarray(number, np.float32)
    return as_constant(np.array(array)) if array.shape else relax.const(np.float32(array))


def extent_of(value: relax.Expr, axes: list[int]) -> int:
    """Return how many elements of a tensor lie along ``axes``."""
    shape = shape_of(value)
    return math.prod(shape[axis] for axis in axes)
