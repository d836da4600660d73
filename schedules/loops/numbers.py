"""Elements of kernels in other types than they are stored in: bfloat16 has no type of its own in buffers."""

from __future__ import annotations

import numpy as np
from tvm import te, tirx
from tvm.ir import Expr

from dlas.stack import BFLOAT16, BFLOAT16_BITS, Conv, to_bfloat16, upper_half


def widened(bits: Expr) -> Expr:
    """Return a number in bfloat16 as float32: its bits are the upper half."""
    return tirx.reinterpret("float32", bits.astype("uint32") << _number(16))


def narrowed(value: Expr) -> Expr:
    """Return a float32 rounded to bfloat16, as bits."""
    return upper_half(tirx.reinterpret("uint32", value), _number, tirx.Select).astype(BFLOAT16_BITS)


def converted(value: Expr | te.TensorSlice, dtype: str) -> Expr:
    """Return a stored element in the type of sums; the bits of a bfloat16 become the float32."""
    value = value.asobject() if isinstance(value, te.TensorSlice) else value
    if dtype == "float32" and str(value.ty.dtype) == BFLOAT16_BITS:
        return widened(value)
    return value.astype(dtype)


def border(conv: Conv, dtype: str, less: int = 0) -> Expr:
    """Return the value of a convolution's padding in the type of a copy of its input, less a number."""
    if conv.input_type == BFLOAT16 and dtype == BFLOAT16_BITS:
        return tirx.const(int(to_bfloat16(np.array(conv.padding_value, np.float32))), dtype)
    value = conv.padding_value - less
    return tirx.const(int(value) if "int" in dtype else value, dtype)


def _number(value: int) -> Expr:
    return tirx.const(value, "uint32")
