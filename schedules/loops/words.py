"""Inputs in words of 32 bits, each with the channels that a dot product adds at one pixel.

Channels of NCHW lie planes apart.  Words make them neighbours once; then they are copied,
shifted and loaded in vectors like numbers of 32 bits.
"""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable

import numpy as np
from tvm import te, tirx
from tvm.ir import Expr
from tvm.s_tir import Schedule

from dlas.schedules.loops.dot_products import DotProducts
from dlas.schedules.loops.numbers import border
from dlas.schedules.loops.transformations import stage
from dlas.stack import Array, Conv

FEW_PLANES = 8
"""With fewer planes than this, threads share rows."""
Reader = Callable[[Expr, Expr, Expr, Expr, Expr, Expr], Expr]
"""Gives the word under a weight."""


def words_a_group(conv: Conv, dots: DotProducts) -> int:
    """Return how many words hold the channels of a group at one pixel; the last may be partly filled."""
    return -(-(conv.c // conv.groups) // dots.terms)


def weights_in_words(weight: Array, conv: Conv, dots: DotProducts) -> Array:
    """Return the weight [k, c / groups, r, s] as [k, c / groups / d, r, s, d]; zeros fill the last word."""
    together = words_a_group(conv, dots)
    whole = np.pad(weight, [(0, 0), (0, together * dots.terms - weight.shape[1]), (0, 0), (0, 0)])
    return whole.reshape(conv.k, together, dots.terms, conv.r, conv.s).transpose(0, 1, 3, 4, 2)


def weights_out_of_words(packed: Array, conv: Conv) -> Array:
    """Return the weight [k, c / groups, r, s] of [k, c / groups / d, r, s, d]."""
    whole = packed.transpose(0, 1, 4, 2, 3).reshape(conv.k, -1, conv.r, conv.s)
    return whole[:, : conv.c // conv.groups]


def in_words(x: te.Tensor, conv: Conv, dots: DotProducts) -> te.Tensor:
    """Return the input [n, c, h, w] in words [n, groups c / groups / d, h w], as stage ``words``.

    The last word of a group repeats its last channel, whose weights are zeros there.
    """
    a_group, together, bits = conv.c // conv.groups, words_a_group(conv, dots), dots.bits

    def channel(number: Expr, term: int) -> Expr:
        if a_group == together * dots.terms:
            return number * dots.terms + term
        within = tirx.min(number % together * dots.terms + term, a_group - 1)
        return number // together * a_group + within

    def word(n: Expr, number: Expr, at: Expr) -> Expr:
        pixel = at // conv.w, at % conv.w
        values = [x(n, channel(number, term), *pixel).astype("int32") for term in range(dots.terms)]
        if dots.offset:
            values = [(value - dots.offset) & (2**bits - 1) for value in values]
        return functools.reduce(operator.or_, [value << bits * term for term, value in enumerate(values)])

    return te.compute((conv.n, conv.groups * together, conv.h * conv.w), word, name="words")


def row_of_words(conv: Conv) -> int:
    """Return the words from a row to the next one, those that strides keep apart left out."""
    return conv.q + (conv.s - 1) * conv.dilation[1] // conv.strides[1]


def reader_of_words(x: te.Tensor, conv: Conv, dots: DotProducts, beyond: int = 0) -> Reader:
    """Return the function to the words of the input [n, c, h, w] under each weight.

    It takes n, the word's number, where the row of the output starts, q, r and s; q may go on into
    further rows, and ``beyond`` the last.  Words of neighbouring pixels of the output are neighbours:
    what strides skip lies in planes of its own, which are written when the input is padded, as
    stage ``pad`` [n, words, strides, strides, rows].
    """
    words, (down, right) = in_words(x, conv, dots), conv.strides
    top, left, _, _ = conv.padding
    low, wide = (conv.r - 1) * conv.dilation[0], (conv.s - 1) * conv.dilation[1]
    row = row_of_words(conv)
    length = (conv.p + low // down) * row + beyond
    outside = tirx.const(dots.word(int(border(conv, dots.read, dots.offset))), "int32")

    def point(n: Expr, number: Expr, i: Expr, j: Expr, at: Expr) -> Expr:
        y, x = at // row * down + i - top, at % row * right + j - left
        inside = tirx.all(y >= 0, y < conv.h, x >= 0, x < conv.w)
        return tirx.if_then_else(inside, words(n, number, y * conv.w + x), outside)

    as_is = not any(conv.padding) and conv.strides == (1, 1) and length <= conv.h * conv.w
    shape = (conv.n, words.shape[1], min(down, low + 1), min(right, wide + 1), -(-length // row) * row)
    padded = words if as_is else te.compute(shape, point, name="pad")

    def pixel(n: Expr, number: Expr, start: Expr, q: Expr, r: Expr, s: Expr) -> Expr:
        y, x = r * conv.dilation[0], s * conv.dilation[1]
        at = start + q + y // down * row + x // right
        return padded(n, number, at) if as_is else padded(n, number, y % down, x % right, at)

    return pixel


def schedule_words(schedule: Schedule, conv: Conv) -> None:
    """Share the packing of words among threads: planes, or rows where there are few; pad them row by row."""
    n, number, at = schedule.get_loops(stage(schedule, "words"))
    tasks = [n, number]
    if int(schedule.get(n).extent) * int(schedule.get(number).extent) < FEW_PLANES:
        row, at = schedule.split(at, [None, conv.w])
        tasks.append(row)
    schedule.parallel(schedule.fuse(*tasks))
    padding = stage(schedule, "pad")
    if padding is not None:
        schedule.split(schedule.get_loops(padding)[-1], [None, row_of_words(conv)])
