"""Depthwise spatial pack by dot products over columns: a filter has no second channel to add."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import ClassVar

import numpy as np
from tvm import te
from tvm.ir import Expr
from tvm.s_tir import Schedule

from dlas.schedules.loops.depthwise import compute_channels_in_registers, depthwise_tiles
from dlas.schedules.loops.dot_forms import ByDotProducts
from dlas.schedules.loops.dot_products import TAPS
from dlas.schedules.loops.filter_tiles import dividing, filters_a_block
from dlas.schedules.loops.registers import DotSums
from dlas.schedules.loops.transformations import in_blocks
from dlas.schedules.spatial_packing.form import SpatialForm
from dlas.stack import Array, Conv, Decisions, Tail, Target


class OverTaps(ByDotProducts, SpatialForm):
    """Depthwise convolution of bytes in blocks of channels: dot products add four columns of each channel.

    Filters are packed [k / t, r, s / d, t, d], with zeros beyond the last column.
    """

    form_of: ClassVar[str | None] = "spatial_pack"
    dots = TAPS

    def pack(self, weight: Array, conv: Conv) -> tuple[Array, ...]:
        """Return the filters [k / t, r, s / d, t, d]."""
        t, d = filters_a_block(conv), self.dots.terms
        whole = np.pad(weight[:, 0], [(0, -conv.k % t), (0, 0), (0, -conv.s % d)])
        return (whole.reshape(-1, t, conv.r, whole.shape[2] // d, d).transpose(0, 2, 3, 1, 4),)

    def unpack(self, packed: Sequence[Array], conv: Conv) -> Array:
        """Return the weight [k, 1, r, s] of the filters that :meth:`pack` returned."""
        blocks = packed[0].transpose(0, 3, 1, 2, 4)
        return blocks.reshape(-1, 1, conv.r, blocks.shape[3] * blocks.shape[4])[: conv.k, ..., : conv.s]

    def compute(self, x: te.Tensor, packed: Sequence[te.Tensor], conv: Conv, tail: Tail) -> te.Tensor:
        """Return the finished output of ``x``, both in blocks of channels."""
        (filters,) = packed
        blocks, _, count, t, d = (int(extent) for extent in filters.shape)
        top, left, bottom, right = conv.padding
        wider = replace(conv, padding=(top, left, bottom, right + count * d - conv.s))
        laid = in_blocks(x, wider, t, self.dots.read, thinned=False)
        extents = {"r": conv.r, "so": count, "term": d}
        r, so, term = axes = [te.reduce_axis((0, extent), name) for name, extent in extents.items()]

        def element(n: Expr, k: Expr, p: Expr, q: Expr, lane: Expr) -> Expr:
            i, j = p * conv.strides[0] + r * conv.dilation[0], q * conv.strides[1] + so * d + term
            value, weight = laid(n, k, i, j, lane), filters[k, r, so, lane, term]
            product = value.astype(conv.accumulator_type) * weight.astype(conv.accumulator_type)
            return te.sum(product, axis=axes)

        return tail(te.compute((conv.n, blocks, conv.p, conv.q, t), element, name="conv"))

    def space(self, conv: Conv, target: Target) -> Sequence[Decisions]:
        """Return rows that share their padded input, and columns of a tile that divide a row."""
        tiles = depthwise_tiles(conv, target, copied=True)
        whole = [point for point in tiles if point["lanes"] == filters_a_block(conv)]
        points = dividing(whole, conv)
        return points or [{**whole[0], "columns": 1}]

    def apply(self, schedule: Schedule, conv: Conv, target: Target, decisions: Decisions) -> None:
        """Accumulate a tile of one row and one block of channels in registers by dot products."""
        compute_channels_in_registers(schedule, conv, decisions, DotSums(self.dots, target))
