"""What elementwise operators do to one element, by formulas that vectorise.

LLVM calls the C library once an element for ``exp``, ``tanh`` and ``erf``, whatever the
width of its vectors.  In float32 they are polynomials here, within 4e-7 of the exact
value.  NaN stays NaN.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import partial

import numpy as np
from tvm import relax, te, tirx
from tvm.ir import Expr

from dlas.lowering.graph.bfloat16 import NARROW, WIDEN
from dlas.schedules.loops.numbers import narrowed, widened

ROUNDS = 8388608.0
"""2^23: a float32 of this size has no fraction, so that adding it rounds a smaller number.

Like all constants here whose value has to be exact, it has at most seven decimal digits,
which is what code for GPUs is written with.
"""
ERF = (
    (1.12837902, 0.192759906, 0.0530598273, 0.00386811006, 0.000287467768, 2.03468508e-06),
    (1.0, 0.504160689, 0.115082803, 0.015171881, 0.001188049, 3.80695025e-05),
)
"""P and Q for which erf x = x P(x^2) / Q(x^2) up to 1.6e-8, |x| <= 3.92: a minimax fit."""
TANH = (
    (0.999999994, 0.13675873, 0.00386334006, 2.79114288e-05, 3.0372297e-08, -1.2061904e-11),
    (1.0, 0.470092036, 0.027227386, 0.000393000193, 1.2809008e-06),
)
"""The same for tanh x, |x| <= 9.01, up to 1.2e-9."""


ROUNDED = 8500000.0
"""Between 2^23 and 2^24, and even: adding it rounds a number from -111,392 to 8,277,215 to an integer."""
ROUNDED_BITS = 0x4B000000 + int(ROUNDED - ROUNDS)
"""Its bits as an integer; those of ``ROUNDED + n`` are n more."""
QUANTIZE = "relax.quantize"


def type_of(element: Expr) -> str:
    """Return the type of an element, such as ``float32``."""
    return str(element.ty.dtype)


def exponential(x: Expr) -> Expr:
    """Return e to the power x; exactly 0 where x is below -87, and infinite from 89 on.

    With n the integer nearest to x / ln 2, e^x = 2^n e^(x - n ln 2): n ln 2 is subtracted in
    two parts to avoid rounding, and the remainder, |x - n ln 2| <= ln 2 / 2, goes into a
    Taylor polynomial.
    """
    if type_of(x) != "float32":
        return tirx.exp(x)
    given, shifted, rest = (tirx.Var(name, "float32") for name in ("given", "shifted", "rest"))
    # The sum's lowest bits are n plus 126, which are the exponent of 2^(n - 1).
    shift = ROUNDS + 126
    whole, high = shifted - _number(shift, x), 0.6875  # few bits, so that its product with n is exact
    reduced = given - whole * _number(high, x) - whole * _number(math.log(2) - high, x)
    power = _polynomial([1 / math.factorial(degree) for degree in range(8)], rest)
    half = tirx.reinterpret("float32", tirx.reinterpret("int32", shifted) << tirx.const(23, "int32"))
    scaled = tirx.Let(rest, reduced, power * half * _number(2, x))
    nearest = given * _number(1 / math.log(2), x) + _number(shift, x)
    return tirx.Let(given, _between(x, -87.3, 89), tirx.Let(shifted, nearest, scaled))


def error_function(x: Expr) -> Expr:
    """Return erf x; exactly 1 or -1 where that is the nearest number."""
    return _odd(x, ERF, 3.92) if type_of(x) == "float32" else tirx.erf(x)


def tanh(x: Expr) -> Expr:
    """Return tanh x; exactly 1 or -1 where that is the nearest number."""
    return _odd(x, TANH, 9.01) if type_of(x) == "float32" else tirx.tanh(x)


def _odd(x: Expr, fraction: tuple[Sequence[float], Sequence[float]], most: float) -> Expr:
    """Return x P(x^2) / Q(x^2), or the sign of x where |x| is above ``most``."""
    given, square = tirx.Var("given", "float32"), tirx.Var("square", "float32")
    above, below = (_polynomial(coefficients, square) for coefficients in fraction)
    inside = tirx.Let(square, given * given, given * above / below)
    low = tirx.Select(given < _number(-most, x), _number(-1, x), inside)
    return tirx.Let(given, x, tirx.Select(given > _number(most, x), _number(1, x), low))


def _polynomial(coefficients: Sequence[float], x: Expr) -> Expr:
    """Return a polynomial, the constant's coefficient first."""
    value = _number(coefficients[-1], x)
    for coefficient in coefficients[-2::-1]:
        value = value * x + _number(coefficient, x)
    return value


def _between(x: Expr, low: float, high: float) -> Expr:
    """Return ``x`` clamped; comparisons with NaN are false, so that it stays."""
    above = tirx.Select(x < _number(low, x), _number(low, x), x)
    return tirx.Select(x > _number(high, x), _number(high, x), above)


def _number(value: float, like: Expr) -> Expr:
    return tirx.const(value, type_of(like))


def _clip(x: Expr, low: Expr, high: Expr) -> Expr:
    return tirx.min(tirx.max(x, low), high)


def _sigmoid(x: Expr) -> Expr:
    one = _number(1, x)
    return one / (one + exponential(-x))


def _gelu(x: Expr) -> Expr:
    return _number(0.5, x) * x * (_number(1, x) + error_function(x * _number(math.sqrt(0.5), x)))


def _gelu_tanh(x: Expr) -> Expr:
    inner = _number(math.sqrt(2 / math.pi), x) * (x + _number(0.044715, x) * x * x * x)
    return _number(0.5, x) * x * (_number(1, x) + tanh(inner))


def nearest_integer(x: Expr, scale: Expr, zero: Expr, low: Expr, high: Expr) -> Expr:
    """Return the integer nearest to x / scale, the even one of two, plus ``zero``, clipped to [low, high].

    ``scale`` to ``high`` are constants.  The quotient is clipped before it is rounded, which is
    done by adding a number so large that the sum has no fraction; the sum's lowest bits are the
    integer.  The zero point is added in integers, so that it does not decide between two.
    """
    (zero_point, lowest, highest) = (int(value.value) for value in (zero, low, high))
    quotient = x if float(scale.value) == 1 else x / scale
    clipped = tirx.max(tirx.min(quotient, _number(highest - zero_point, x)), _number(lowest - zero_point, x))
    bits = tirx.reinterpret("int32", clipped + _number(ROUNDED, x))
    return bits - tirx.const(ROUNDED_BITS - zero_point, "int32")


SCALARS: dict[str, Callable[..., Expr]] = {
    "relax.add": lambda x, y: x + y,
    "relax.subtract": lambda x, y: x - y,
    "relax.multiply": lambda x, y: x * y,
    "relax.divide": lambda x, y: x / y,
    "relax.maximum": tirx.max,
    "relax.minimum": tirx.min,
    "relax.negative": lambda x: -x,
    "relax.abs": tirx.abs,
    "relax.erf": error_function,
    "relax.exp": exponential,
    "relax.tanh": tanh,
    "relax.sqrt": tirx.sqrt,
    "relax.round": tirx.round,
    "relax.clip": _clip,
    "relax.sigmoid": _sigmoid,
    "relax.astype": lambda x: x,
    NARROW: narrowed,
    WIDEN: widened,
    QUANTIZE: nearest_integer,
    "relax.nn.relu": lambda x: tirx.max(x, _number(0, x)),
    "relax.nn.relu6": lambda x: _clip(x, _number(0, x), _number(6, x)),
    "relax.nn.silu": lambda x: x * _sigmoid(x),
    "relax.nn.gelu": _gelu,
    "relax.nn.gelu_tanh": _gelu_tanh,
    "relax.nn.leakyrelu": lambda x, slope: tirx.Select(x > 0, x, x * slope),
}
"""What each operator does to one element."""
FORMULAS = {
    *("relax.erf", "relax.exp", "relax.tanh", "relax.sigmoid"),
    *("relax.nn.silu", "relax.nn.gelu", "relax.nn.gelu_tanh"),
}
"""Operators of many operations, whose intermediate values have names.

TVM's passes put the values in place of the names, so that a formula of a formula of a
formula takes minutes to compile.
"""
NAMED_ONCE = {
    *("relax.add", "relax.subtract", "relax.multiply", "relax.divide", "relax.maximum", "relax.minimum"),
    *("relax.negative", "relax.clip", "relax.astype", "relax.nn.relu", "relax.nn.relu6", QUANTIZE, WIDEN),
}
"""Operators whose expression uses its argument once; others make a chain grow exponentially."""


def _elementwise(builder: relax.BlockBuilder, call: relax.Call, operator: str) -> relax.Call:
    """Return a call of ``operator`` as a kernel with the formula of ``SCALARS``."""
    name = operator.rpartition(".")[2]

    def compute(x: te.Tensor) -> te.Tensor:
        return te.compute(x.shape, lambda *at: SCALARS[operator](x(*at)), name=name)

    return builder.call_te(compute, call.args[0], primfunc_name_hint=name)


def limits_of(call: relax.Call) -> tuple[int, int]:
    """Return the least and the largest integer of the type that a quantisation writes."""
    limits = np.iinfo(str(call.ty.dtype))
    return int(limits.min), int(limits.max)


def _quantise(builder: relax.BlockBuilder, call: relax.Call) -> relax.Call:
    """Return a quantisation by one stored scale and zero point as a kernel."""
    scale, zero = (float(argument.value.numpy().reshape(())) for argument in call.args[1:3])
    dtype, (low, high) = str(call.ty.dtype), limits_of(call)

    def compute(x: te.Tensor) -> te.Tensor:
        numbers = [tirx.const(number, x.dtype) for number in (scale, zero, low, high)]
        return te.compute(
            x.shape, lambda *at: nearest_integer(x(*at), *numbers).astype(dtype), name="quantize"
        )

    return builder.call_te(compute, call.args[0], primfunc_name_hint="quantize")


WRITTEN = {
    QUANTIZE: _quantise,
    **{operator: partial(_elementwise, operator=operator) for operator in sorted({*FORMULAS, NARROW, WIDEN})},
}
"""Legalisation functions by operator, for TVM's ``LegalizeOps``."""
