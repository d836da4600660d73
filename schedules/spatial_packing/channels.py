"""Spatial pack by dot products over channels: those that one adds are contiguous."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import ClassVar

import numpy as np
from tvm import te
from tvm.ir import Expr
from tvm.s_tir import Schedule

from dlas.schedules.loops.dot_forms import ByDotProducts, forms_of
from dlas.schedules.loops.filter_tiles import (
    dividing,
    filters_a_block,
    pointwise,
    shared_filter_tiles,
    thins,
)
from dlas.schedules.loops.numbers import converted
from dlas.schedules.loops.registers import DotSums, compute_filters_in_registers
from dlas.schedules.loops.transformations import corrected, in_blocks, inline, out_of_blocks
from dlas.schedules.loops.vectors import BLOCKS, FEWEST
from dlas.schedules.spatial_packing.blocks import row_and_column, rows_and_columns
from dlas.schedules.spatial_packing.form import SpatialForm
from dlas.stack import Array, Conv, Decisions, Tail, Target, channel_block


class OverChannels(ByDotProducts, SpatialForm):
    """Dot products of neighbouring channels, of bytes or of bfloat16.

    Filters are packed [k / t, c / u, r, s, u / d, t, d], with zeros beyond the last channel, for
    dot products of d terms; the input, as stage ``pad``, in blocks of u channels.  Where that is less
    by an offset, sums of the filters' weights times it are packed too, [k / t, t].
    """

    form_of: ClassVar[str | None] = "spatial_pack"

    def takes(self, conv: Conv) -> bool:
        """Whether vectors of filters and dot products have no channels of two groups."""
        whole = conv.groups == 1 or (conv.c // conv.groups) % self.dots.terms == 0
        return whole and not conv.depthwise and filters_a_block(conv) in BLOCKS

    def layouts(self, conv: Conv, target: Target) -> tuple[str, str]:
        """Return blocked layouts with ``layout="blocked"``, of four channels where there are fewer."""
        read, written = super().layouts(conv, target)
        few = self.layout == "blocked" and read == "NCHW" and conv.groups == 1 and conv.c > 1
        return f"NCHW{FEWEST}c" if few else read, written

    def pack(self, weight: Array, conv: Conv) -> tuple[Array, ...]:
        """Return the filters [k / t, c / groups / u, r, s, u / d, t, d], and what offsets take off."""
        t, u, d = filters_a_block(conv), _channels_together(conv), self.dots.terms
        whole = np.pad(weight, [(0, -conv.k % t), (0, -weight.shape[1] % u), (0, 0), (0, 0)])
        blocks = whole.reshape(-1, t, whole.shape[1] // u, u // d, d, conv.r, conv.s)
        return blocks.transpose(0, 2, 5, 6, 3, 1, 4), *self.dots.corrections(
            whole.reshape(-1, t, whole[0].size)
        )

    def unpack(self, packed: Sequence[Array], conv: Conv) -> Array:
        """Return the weight [k, c / groups, r, s] of the filters that :meth:`pack` returned."""
        blocks = packed[0]
        k, outer, r, s, inner, t, d = blocks.shape
        whole = blocks.transpose(0, 5, 1, 4, 6, 2, 3).reshape(k * t, outer * inner * d, r, s)
        return whole[: conv.k, : conv.c // conv.groups]

    def compute(self, x: te.Tensor, packed: Sequence[te.Tensor], conv: Conv, tail: Tail) -> te.Tensor:
        """Return the finished output of ``x``, both in the layouts that ``conv`` names."""
        filters, *added = packed
        blocks, outer, _, _, inner, t, d = (int(extent) for extent in filters.shape)
        joined = pointwise(conv)
        thinned = joined and thins(conv)
        block = channel_block(conv.input_layout) or _channels_together(conv)
        laid = in_blocks(x, conv, block, self.dots.read, thinned, self.dots.offset)
        strides = (1, 1) if thinned else conv.strides
        extents = {"co": outer, "r": conv.r, "s": conv.s, "ci": inner, "term": d}
        co, r, s, ci, term = axes = [te.reduce_axis((0, extent), name) for name, extent in extents.items()]
        a_group = conv.k // conv.groups

        def element(n: Expr, k: Expr, p: Expr, q: Expr, lane: Expr) -> Expr:
            p, q = row_and_column(p, q, conv, joined)
            i, j = p * strides[0] + r * conv.dilation[0], q * strides[1] + s * conv.dilation[1]
            at = (co, ci * d + term)
            if conv.groups > 1:
                together = (k * t // a_group * outer + co) * inner + ci  # d channels, which are in one block
                at = (together // (block // d), together % (block // d) * d + term)
            value, weight = laid(n, at[0], i, j, at[1]), filters[k, co, r, s, ci, lane, term]
            product = converted(value, conv.accumulator_type) * converted(weight, conv.accumulator_type)
            return te.sum(product, axis=axes)

        shape = (conv.n, blocks, *rows_and_columns(conv, joined), t)
        convolved = te.compute(shape, element, name="conv")
        return tail(out_of_blocks(corrected(convolved, added), conv))

    def space(self, conv: Conv, target: Target) -> Sequence[Decisions]:
        """Return register tiles of dot products, and orders of the loops around them."""
        return dividing(shared_filter_tiles(conv, target, self.dots.unit(target)), conv)

    def apply(self, schedule: Schedule, conv: Conv, target: Target, decisions: Decisions) -> None:
        """Accumulate tiles of the output in registers by dot products, and apply the tail there."""
        inline(schedule, "unpack")
        inline(schedule, "corrected")
        compute_filters_in_registers(schedule, conv, decisions, DotSums(self.dots, target))


OVER_CHANNELS = forms_of(OverChannels)
"""The form by the dot products of each family of processors."""


def _channels_together(conv: Conv) -> int:
    """Return u: the channels of a block, or those that all groups have whole numbers of."""
    block = channel_block(conv.input_layout) or FEWEST
    return block if conv.groups == 1 else math.gcd(conv.c // conv.groups, block)
