"""The quantised numbers of a network: integers with a scale and a zero point."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from tvm import relax

from dlas.lowering.graph.graph import Graph, Readers, as_array, is_call, is_constant, readers_of, shape_of
from dlas.stack import Array

DEQUANTIZE = "relax.dequantize"


@dataclass(frozen=True)
class Format:
    """How the integers of an activation stand for real numbers: ``scale`` times (integer - ``zero``)."""

    scale: np.float32
    zero: int
    dtype: str
    """Of the integers, such as ``uint8``."""

    @property
    def lowest(self) -> int:
        """The smallest integer."""
        return int(np.iinfo(self.dtype).min)

    @property
    def highest(self) -> int:
        """The largest integer."""
        return int(np.iinfo(self.dtype).max)

    @classmethod
    def of(cls, call: relax.Call, dtype: str) -> Format | None:
        """Return the format that a quantisation names; None where a scale is not one stored number."""
        _, scale, zero = call.args[:3]
        if not (is_constant(scale) and is_constant(zero)):
            return None
        scales, zeros = as_array(scale), as_array(zero)
        if scales.size != 1 or zeros.size != 1:
            return None
        return cls(np.float32(scales.reshape(())), int(zeros.reshape(())), dtype)


@dataclass(frozen=True)
class QuantisedActivation:
    """A quantised tensor that is computed at run time."""

    integers: relax.Var
    format: Format


@dataclass(frozen=True)
class QuantisedConstant:
    """A quantised tensor whose integers are stored."""

    integers: Array
    scale: Array
    zero: Array
    """They broadcast to the shape of ``integers``."""

    @classmethod
    def of(cls, call: relax.Call) -> QuantisedConstant | None:
        """Return what a dequantisation reads; None where that is not stored."""
        x, scale, zero = call.args[:3]
        if not (is_constant(x) and is_constant(scale) and is_constant(zero)):
            return None
        integers, axis = as_array(x), int(call.attrs.axis)
        scales = along_axis(as_array(scale).astype(np.float32), integers.ndim, axis)
        return cls(integers, scales, along_axis(as_array(zero).astype(np.int64), integers.ndim, axis))

    def values(self) -> Array:
        """Return the real numbers, in float32."""
        shifted = (self.integers.astype(np.int64) - self.zero).astype(np.float32)
        return np.asarray(shifted * self.scale, np.float32)

    def transposed(self, axes: Sequence[int] | None) -> QuantisedConstant:
        """Return the tensor with its axes in another order; None reverses them."""
        arrays = (self.integers, self.scale, self.zero)
        return QuantisedConstant(*(np.transpose(array, axes) for array in arrays))

    def reshaped(self, shape: Sequence[int]) -> QuantisedConstant | None:
        """Return the tensor in another shape; None where its scales do not follow."""
        arrays = [self.integers.reshape(shape)]
        for array in (self.scale, self.zero):
            if array.size not in (1, self.integers.size):
                return None
            arrays.append(array.reshape([1] * len(shape) if array.size == 1 else shape))
        return QuantisedConstant(*arrays)


def along_axis(array: Array, rank: int, axis: int) -> Array:
    """Return one number, or one for each index of an axis, in a shape that broadcasts to ``rank``."""
    shape = [1] * rank
    if array.size > 1:
        shape[axis % rank] = array.size
    return array.reshape(shape)


@dataclass
class QuantisedValues:
    """Tells which values of a network are quantised."""

    graph: Graph
    values: dict[relax.Var, relax.Expr] = field(init=False)
    readers: Readers = field(init=False)

    def __post_init__(self) -> None:
        self.values = dict(self.graph.bindings)
        self.readers = readers_of(self.graph)

    def call(self, value: relax.Expr, operator: str | None = None) -> relax.Call | None:
        """Return the call that a variable holds, of one operator if it is named; else None."""
        held = self.values.get(value)
        return held if held is not None and is_call(held, operator) else None

    def read_once(self, value: relax.Var) -> bool:
        """Whether a single expression reads a variable."""
        return len(self.readers[value]) == 1

    def activation(self, value: relax.Expr) -> QuantisedActivation | None:
        """Return the quantised tensor that a value is the real numbers of."""
        call = self.call(value, DEQUANTIZE)
        if call is None or not isinstance(call.args[0], relax.Var):
            return None
        form = Format.of(call, str(call.args[0].ty.dtype))
        return None if form is None else QuantisedActivation(call.args[0], form)

    def stored(self, value: relax.Expr) -> QuantisedConstant | None:
        """Return the stored tensor that a value is the real numbers of, perhaps transposed or reshaped."""
        call = self.call(value)
        if call is None:
            return None
        if call.op.name == DEQUANTIZE:
            return QuantisedConstant.of(call)
        if call.op.name not in ("relax.permute_dims", "relax.reshape"):
            return None
        inner = self.stored(call.args[0])
        if inner is None:
            return None
        if call.op.name == "relax.reshape":
            return inner.reshaped(shape_of(value))
        axes = call.attrs.axes
        return inner.transposed(None if axes is None else [int(axis) for axis in axes])
