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
from dlas.schedules.loops.transformations import parallelise, stage
from dlas.stack import Array, Conv

Reader = Callable[[Expr, Expr, Expr, Expr, Expr, Expr], Expr]
"""Gives the word under a weight, from n, the word's number, p, q, r and s."""


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
    """Return the input [n, c, h, w] in words [n, groups c / groups / d, h, w], as stage ``words``.

    The last word of a group repeats its last channel, whose weights are zeros there.
    """
    a_group, together, bits = conv.c // conv.groups, words_a_group(conv, dots), dots.bits

    def channel(number: Expr, term: int) -> Expr:
        if a_group == together * dots.terms:
            return number * dots.terms + term
        within = tirx.min(number % together * dots.terms + term, a_group - 1)
        return number // together * a_group + within

    def word(n: Expr, number: Expr, i: Expr, j: Expr) -> Expr:
        values = [x(n, channel(number, term), i, j).astype("int32") for term in range(dots.terms)]
        if dots.offset:
            values = [(value - dots.offset) & (2**bits - 1) for value in values]
        return functools.reduce(operator.or_, [value << bits * term for term, value in enumerate(values)])

    return te.compute((conv.n, conv.groups * together, conv.h, conv.w), word, name="words")


def reader_of_words(x: te.Tensor, conv: Conv, dots: DotProducts, columns: int) -> Reader:
    """Return the function to the words of the input [n, c, h, w] under each weight, for rows of ``columns``.

    Words of neighbouring columns of the output are neighbours: where strides skip columns, those
    a stride apart are brought together when the input is padded, as stage ``pad``
    [n, words, h, strides, w / strides].
    """
    words, stride = in_words(x, conv, dots), conv.strides[1]
    top, left, bottom, _ = conv.padding
    reach, thinned = (conv.s - 1) * conv.dilation[1], conv.r == 1
    width, apart = columns + reach // stride, min(stride, reach + 1)
    height = conv.p if thinned else conv.h + top + bottom
    skips = stride > 1 or (thinned and conv.strides[0] > 1)
    outside = tirx.const(dots.word(int(border(conv, dots.read, dots.offset))), "int32")

    def point(n: Expr, number: Expr, i: Expr, phase: Expr, j: Expr) -> Expr:
        row = (i * conv.strides[0] if thinned else i) - top
        column = j * stride + phase - left
        inside = tirx.all(row >= 0, row < conv.h, column >= 0, column < conv.w)
        return tirx.if_then_else(inside, words(n, number, row, column), outside)

    as_is = not (any(conv.padding) or skips) and width == conv.w
    shape = (conv.n, words.shape[1], height, apart, width)
    padded = words if as_is else te.compute(shape, point, name="pad")

    def pixel(n: Expr, number: Expr, p: Expr, q: Expr, r: Expr, s: Expr) -> Expr:
        row = p if thinned else p * conv.strides[0] + r * conv.dilation[0]
        offset = s * conv.dilation[1]
        if as_is:
            return padded(n, number, row, q + offset)
        return padded(n, number, row, offset % stride, q + offset // stride)

    return pixel


def schedule_words(schedule: Schedule, threads: int = 0) -> None:
    """Share the packing of words among threads: planes, or rows where planes are few for ``threads``."""
    words = stage(schedule, "words")
    n, number, i, j = schedule.get_loops(words)
    planes = int(schedule.get(n).extent) * int(schedule.get(number).extent)
    if not 0 < 2 * threads <= planes:
        parallelise(schedule, words, 3)
        return
    schedule.parallel(schedule.fuse(n, number))
    schedule.fuse(i, j)
