"""Blocks of filters and channels: their sizes, which of them fill vector lanes, and what is multiplied."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from tvm import te
from tvm.ir import Expr
from tvm.s_tir import Schedule

from dlas.schedules.loops.columns import column_tiles, compute_columns_in_registers
from dlas.schedules.loops.depthwise import compute_channels_in_registers, depthwise_tiles
from dlas.schedules.loops.filter_tiles import filters_a_block, pointwise, shared_filter_tiles
from dlas.schedules.loops.registers import compute_filters_in_registers
from dlas.schedules.loops.vectors import BLOCKS, FEWEST, divisors
from dlas.stack import Conv, Decisions, Target, channel_block

Space = Callable[[Conv, Target], Sequence[Decisions]]
"""Gives the points of a design space, the best guess first."""
Apply = Callable[[Schedule, Conv, Decisions], None]
"""Transforms loops as one point of that space says."""
Pixels = Callable[[Expr, Expr, Expr, Expr, Expr, Expr], Expr]
"""Gives the input's element under a weight, by n, channel, p, q, r and s."""


@dataclass(frozen=True)
class SumPlace:
    """Where a sum is, in blocks of filters."""

    n: Expr
    """Of the image in its batch."""
    block: Expr
    """Of filters."""
    p: Expr
    q: Expr
    """Row and column, as :func:`rows_and_columns` counts them."""
    lane: Expr
    """The filter in its block."""


Factors = Callable[[SumPlace, Expr, Expr, Expr, Expr], tuple[Expr, te.TensorSlice]]
"""Gives an input and the weight that multiplies it, by the place of their sum, co, r, s and ci."""


def channels_together(conv: Conv) -> int:
    """Return u, the channels whose weights are contiguous: it divides a group's channels and a block."""
    channels, block = conv.c // conv.groups, channel_block(conv.input_layout)
    return math.gcd(channels, block) if block else divisors(channels, BLOCKS[0])[-1]


def filters_a_vector(conv: Conv) -> int:
    """Return the filters of a block, or 1 where there are too few to fill vector lanes."""
    filters = filters_a_block(conv)
    return filters if filters >= FEWEST else 1


def kind_of_tile(conv: Conv) -> tuple[Space, Apply]:
    """Return the design space and the schedule for the axis that can fill vector lanes."""
    if filters_a_vector(conv) == 1:
        return column_tiles, compute_columns_in_registers
    if conv.depthwise and channel_block(conv.output_layout):
        return depthwise_tiles, compute_channels_in_registers
    return shared_filter_tiles, compute_filters_in_registers


def lanes_are_filters(conv: Conv) -> bool:
    """Whether the filters of a block fill vector lanes, and multiply the same inputs."""
    return kind_of_tile(conv) == (shared_filter_tiles, compute_filters_in_registers)


def joins_rows(conv: Conv) -> bool:
    """Whether the sum has all pixels in one row, so that tiles cross from one row into the next."""
    return pointwise(conv) and lanes_are_filters(conv)


def rows_and_columns(conv: Conv, joined: bool) -> tuple[int, int]:
    """Return the rows and columns of the sum: the output's, or all pixels in one row."""
    return (1, conv.p * conv.q) if joined else (conv.p, conv.q)


def row_and_column(p: Expr, q: Expr, conv: Conv, joined: bool) -> tuple[Expr, Expr]:
    """Return where in the output a place of the sum is."""
    return (q // conv.q, q % conv.q) if joined else (p, q)


def factors_of(pixels: Pixels, filters: te.Tensor, conv: Conv) -> Factors:
    """Return the function to what is multiplied by packed filters [k / t, c / groups / u, r, s, u, t]."""
    _, outer, _, _, inner, t = (int(extent) for extent in filters.shape)
    a_group, joined = conv.k // conv.groups, joins_rows(conv)

    def factors(at: SumPlace, co: Expr, r: Expr, s: Expr, ci: Expr) -> tuple[Expr, te.TensorSlice]:
        p, q = row_and_column(at.p, at.q, conv, joined)
        group = (at.block * t + (at.lane if t > a_group else 0)) // a_group if conv.groups > 1 else 0
        value = pixels(at.n, group * (outer * inner) + co * inner + ci, p, q, r, s)
        return value, filters[at.block, co, r, s, ci, at.lane]

    return factors
