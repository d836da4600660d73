"""Spatial pack convolution: input and filters regrouped into tiles that are meant to be loaded once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from tvm import te, tirx

from dlas.convolution import Conv, Tail
from dlas.schedules._loops import (
    accumulate_at,
    bind,
    is_gpu,
    only_nchw,
    output_block,
    pad,
    parallelise,
    schedule_padding,
)
from dlas.stack import Algorithm, Target

FILTERS = 8
ROWS = 2
COLUMNS = 8
"""The largest tile: filters, and rows and columns of the output."""


@dataclass(frozen=True)
class SpatialPack(Algorithm):
    """Compute the output in tiles of filters, rows and columns, from packed filters and input.

    Filters are packed when the network is compiled, [k / t, c, r, s, t].  The
    input is packed when it runs: one tile holds what a tile of the output reads,
    so tiles overlap by the kernel's border only.  Tiles at the edge compute points
    that nobody reads.  Only threads are used to make it faster.

    References
    ----------
    DLAS paper, sections 3.4 (spatial pack) and 4.4 (the minimal schedule).
    """

    def supports(self, conv: Conv) -> str | None:
        """Return why ``conv`` is declined: only layouts other than NCHW are."""
        return only_nchw(conv)

    def pack(self, weight: npt.NDArray[Any], conv: Conv) -> tuple[npt.NDArray[Any], ...]:
        """Return the filters in tiles [k / t, c / groups, r, s, t]."""
        tiles = weight.reshape(-1, tile_of(conv)[0], *weight.shape[1:])
        return (np.moveaxis(tiles, 1, -1),)

    def compute(self, x: Any, packed: Sequence[Any], conv: Conv, tail: Tail) -> Any:
        """Return the finished output [n, k, p, q] of ``x`` [n, c, h, w]."""
        (filters,) = packed
        filters_a_tile, rows, columns = tile_of(conv)
        tiles = pack_input(pad(x, conv), conv)
        channels, filters_a_group = conv.c // conv.groups, conv.k // conv.groups
        c = te.reduce_axis((0, channels), "c")
        r = te.reduce_axis((0, conv.r), "r")
        s = te.reduce_axis((0, conv.s), "s")

        def element(n: Any, kt: Any, pt: Any, qt: Any, i: Any, j: Any, t: Any) -> Any:
            first = kt * filters_a_tile // filters_a_group * channels
            down, right = (
                i * conv.strides[0] + r * conv.dilation[0],
                j * conv.strides[1] + s * conv.dilation[1],
            )
            pixel = tiles[n, pt, qt, first + c, down, right].astype(conv.accumulator_type)
            return te.sum(pixel * filters[kt, c, r, s, t].astype(conv.accumulator_type), axis=[c, r, s])

        grid = (conv.n, conv.k // filters_a_tile, -(-conv.p // rows), -(-conv.q // columns))
        tiled = te.compute((*grid, rows, columns, filters_a_tile), element, name="conv")

        def point(n: Any, k: Any, p: Any, q: Any) -> Any:
            place = (n, k // filters_a_tile, p // rows, q // columns)
            return tiled[(*place, p % rows, q % columns, k % filters_a_tile)]

        return tail(te.compute((conv.n, conv.k, conv.p, conv.q), point, name="unpack"))

    def schedule(self, schedule: Any, conv: Conv, target: Target) -> None:
        """Spread the tiles of the input, then of the output, then its points, over threads."""
        gpu, output = is_gpu(target), output_block(schedule)
        spread = bind if gpu else parallelise
        unpack, tiled = schedule.get_sblock("unpack"), schedule.get_sblock("conv")
        if schedule.get(unpack).name_hint != schedule.get(output).name_hint:
            schedule.compute_inline(unpack)
        spread(schedule, output, 4 if gpu else 3)
        point = spread(schedule, tiled, 7 if gpu else 3)
        accumulate_at(schedule, tiled, point, 3, gpu)
        spread(schedule, schedule.get_sblock("tiles"), 6 if gpu else 3)
        schedule_padding(schedule, conv, gpu)


def tile_of(conv: Conv) -> tuple[int, int, int]:
    """Return the tile's filters (a divisor of a group's), rows and columns."""
    filters_a_group = conv.k // conv.groups
    filters = next(t for t in range(min(FILTERS, filters_a_group), 0, -1) if filters_a_group % t == 0)
    return filters, min(ROWS, conv.p), min(COLUMNS, conv.q)


def pack_input(padded: Any, conv: Conv) -> Any:
    """Return what each tile of the output reads, [n, p / rows, q / columns, c, height, width].

    Stage ``tiles``; beyond the input's edge it holds zeros, which only points
    that nobody reads are made of.
    """
    _, rows, columns = tile_of(conv)
    height = (rows - 1) * conv.strides[0] + (conv.r - 1) * conv.dilation[0] + 1
    width = (columns - 1) * conv.strides[1] + (conv.s - 1) * conv.dilation[1] + 1
    _, _, h, w = padded.shape

    def element(n: Any, pt: Any, qt: Any, c: Any, i: Any, j: Any) -> Any:
        row, column = pt * rows * conv.strides[0] + i, qt * columns * conv.strides[1] + j
        there = tirx.all(row < h, column < w)
        return tirx.if_then_else(there, padded[n, c, row, column], tirx.const(0, padded.dtype))

    grid = (conv.n, -(-conv.p // rows), -(-conv.q // columns))
    return te.compute((*grid, conv.c, height, width), element, name="tiles")
