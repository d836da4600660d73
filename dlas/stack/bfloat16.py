"""Numbers in bfloat16: the upper half of a float32, whose bits are stored as ``uint16``.

NumPy has no such type.  TVM has one, whose operands it turns to float32 before any instruction
for bfloat16 could read them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from dlas.stack.array import Array

BFLOAT16 = "bfloat16"
BFLOAT16_BITS = "uint16"
"""The type that numbers in bfloat16 are stored in."""
BFLOAT16_STEP = 2.0**-7
"""Distance between 1 and the next number."""


def stored_type(dtype: str) -> str:
    """Return the type of arrays and buffers that hold numbers of a type."""
    return BFLOAT16_BITS if dtype == BFLOAT16 else dtype


def upper_half(bits: Any, number: Callable[[int], Any], choose: Callable[[Any, Any, Any], Any]) -> Any:
    """Return the bits of float32 numbers rounded to bfloat16, in the lower half of ``uint32``.

    The nearest number is taken, the even one of two; too large ones become infinite, and NaN stays NaN.
    Arrays and expressions of TVM are rounded alike.

    Parameters
    ----------
    bits : ndarray or Expr
        ``uint32``.
    number : callable
        Returns a constant ``uint32``.
    choose : callable
        Returns, by a condition, its second or its third argument.
    """
    odd = (bits >> number(16)) & number(1)
    nearest = bits + number(0x7FFF) + odd
    quiet = bits | number(0x400000)
    none = (bits & number(0x7FFFFFFF)) > number(0x7F800000)
    return choose(none, quiet, nearest) >> number(16)


def to_bfloat16(array: Array) -> Array:
    """Return the bits of an array of float32 in bfloat16, rounded."""
    bits = np.asarray(array, np.float32).view(np.uint32)
    with np.errstate(over="ignore"):  # of what is NaN
        return np.asarray(upper_half(bits, np.uint32, np.where)).astype(np.uint16)


def from_bfloat16(bits: Array) -> Array:
    """Return an array of bits in bfloat16 as float32, which is exact."""
    return (np.asarray(bits).astype(np.uint32) << np.uint32(16)).view(np.float32)
