"""float16 in integers and float32: WebAssembly has no type for halves, and LLVM converts one at a time."""

from __future__ import annotations

from typing import Any

import tvm
import tvm_ffi
from tvm import tirx
from tvm.ir import Expr

SIGN, MAGNITUDE = 0x8000, 0x7FFF
INFINITE, NOT_A_NUMBER = 0x7C00, 0x7E00
"""Halves from the first one on are no finite numbers."""
FRACTION = 23 - 10
"""Bits that the fraction of a float32 has more."""
TOO_LARGE = 0x47800000
"""As a float32, 2**16: what is at least as large has no finite half."""
SMALLEST_NORMAL = 0x38800000
"""As a float32, 2**-14: the fraction of a smaller half begins with zeros."""
ALIGNS = (127 - 15 + FRACTION + 1) << 23
"""As a float32, what gives a small half's fraction when it is added: the sum's last bit counts 2**-24."""


def convert_by_integers(function: tirx.PrimFunc) -> tirx.PrimFunc:
    """Return a lowered function whose conversions between float16 and float32 work on vectors of integers."""

    def converted(cast: tirx.Cast) -> Expr:
        target, source = tvm.DataType(str(cast.ty.dtype)), tvm.DataType(str(cast.value.ty.dtype))
        kinds, lanes = (_kind(source), _kind(target)), int(target.lanes)
        if kinds == ("float16", "float32"):
            return widened(tirx.reinterpret(_vector("uint16", lanes), cast.value), lanes)
        if kinds == ("float32", "float16"):
            return tirx.reinterpret(_vector("float16", lanes), narrowed(cast.value, lanes))
        return cast

    return function.with_body(tvm_ffi.structural_map(function.body, [(tirx.Cast, converted)]))


def compare_in_float32(function: tirx.PrimFunc) -> tirx.PrimFunc:
    """Return a lowered function that takes maxima and minima of halves in float32.

    LLVM does not come to an end with a maximum of maxima of halves for WebAssembly.
    """

    def compared(extreme: tirx.Max | tirx.Min) -> Expr:
        dtype = tvm.DataType(str(extreme.ty.dtype))
        if _kind(dtype) != "float16":
            return extreme
        kind = _vector("float32", int(dtype.lanes))
        found = type(extreme)(_as_float32(extreme.a, kind), _as_float32(extreme.b, kind))
        return tirx.Cast(str(dtype), found)

    return function.with_body(
        tvm_ffi.structural_map(function.body, [(tirx.Max, compared), (tirx.Min, compared)])
    )


def _as_float32(half: Expr, kind: str) -> Expr:
    """Return a half in float32; of a rounded one what it was before, since rounding changes no order."""
    if isinstance(half, tirx.Cast) and isinstance(half.value, tirx.Max | tirx.Min):
        return half.value
    return tirx.Cast(kind, half)


def widened(bits: Expr, lanes: int) -> Expr:
    """Return the float32 numbers of halves that are given by their bits."""
    word = bits.astype(_vector("uint32", lanes))
    magnitude = word & _constant(MAGNITUDE, lanes)
    shifted = magnitude << _constant(FRACTION, lanes)
    # The exponent counts from 15 in a half and from 127 in a float32; small halves are right too.
    scale = tirx.const(2.0 ** (127 - 15), "float32")
    finite = tirx.reinterpret(_vector("float32", lanes), shifted) * _repeated(scale, lanes)
    special = tirx.reinterpret(_vector("float32", lanes), shifted | _constant(0x7F800000, lanes))
    value = tirx.Select(magnitude >= _constant(INFINITE, lanes), special, finite)
    sign = (word & _constant(SIGN, lanes)) << _constant(16, lanes)
    unsigned = tirx.reinterpret(_vector("uint32", lanes), value)
    return tirx.reinterpret(_vector("float32", lanes), unsigned | sign)


def narrowed(value: Expr, lanes: int) -> Expr:
    """Return the bits of the halves nearest to float32 numbers, of two the even one."""
    word = tirx.reinterpret(_vector("uint32", lanes), value)
    magnitude = word & _constant(0x7FFFFFFF, lanes)
    sign = (word >> _constant(16, lanes)) & _constant(SIGN, lanes)
    odd = (magnitude >> _constant(FRACTION, lanes)) & _constant(1, lanes)
    rebased = magnitude + _constant(((15 - 127) << 23) + 0xFFF, lanes) + odd
    normal = rebased >> _constant(FRACTION, lanes)
    aligned = tirx.reinterpret(_vector("float32", lanes), magnitude) + tirx.reinterpret(
        _vector("float32", lanes), _constant(ALIGNS, lanes)
    )
    small = tirx.reinterpret(_vector("uint32", lanes), aligned) - _constant(ALIGNS, lanes)
    finite = tirx.Select(magnitude < _constant(SMALLEST_NORMAL, lanes), small, normal)
    not_a_number = magnitude > _constant(0x7F800000, lanes)
    special = tirx.Select(not_a_number, _constant(NOT_A_NUMBER, lanes), _constant(INFINITE, lanes))
    half = tirx.Select(magnitude >= _constant(TOO_LARGE, lanes), special, finite)
    return (half | sign).astype(_vector("uint16", lanes))


def _kind(dtype: Any) -> str:
    """Return the type of a vector's elements."""
    return str(dtype).partition("x")[0]


def _vector(kind: str, lanes: int) -> str:
    return kind if lanes == 1 else f"{kind}x{lanes}"


def _constant(value: int, lanes: int) -> Expr:
    return _repeated(tirx.const(value & 0xFFFFFFFF, "uint32"), lanes)


def _repeated(value: Expr, lanes: int) -> Expr:
    return value if lanes == 1 else tirx.Broadcast(value, lanes)
