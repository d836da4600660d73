"""Spatial pack of halves: products of the channels that are packed together are added in float16."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import ClassVar

from tvm import te
from tvm.ir import Expr

from dlas.schedules.loops.filter_tiles import dividing, shared_filter_tiles
from dlas.schedules.loops.halves import CHAIN, HALF, LONGEST_CHAIN, SHORTEST_CHAIN
from dlas.schedules.loops.transformations import out_of_blocks
from dlas.schedules.loops.vectors import vector_unit
from dlas.schedules.spatial_packing.blocks import (
    SumPlace,
    channels_together,
    factors_of,
    joins_rows,
    lanes_are_filters,
    rows_and_columns,
)
from dlas.schedules.spatial_packing.form import SpatialForm
from dlas.schedules.spatial_packing.inputs import pixels_of
from dlas.stack import Conv, Decisions, Tail, Target


class InChains(SpatialForm):
    """Vectors of halves: chains of products are added in float16, and the chains in float32."""

    form_of: ClassVar[str | None] = "spatial_pack"
    first_sums: ClassVar[str | None] = HALF

    def takes(self, conv: Conv) -> bool:
        """Whether vector lanes are filters, and a chain is worth its addition."""
        return lanes_are_filters(conv) and SHORTEST_CHAIN <= channels_together(conv) <= LONGEST_CHAIN

    def compute(self, x: te.Tensor, packed: Sequence[te.Tensor], conv: Conv, tail: Tail) -> te.Tensor:
        """Return the finished output of ``x``, both in the layouts that ``conv`` names."""
        (filters,) = packed
        blocks, outer, _, _, inner, t = (int(extent) for extent in filters.shape)
        pixels = pixels_of(x, replace(conv, accumulator_type=HALF), self.layout)  # padded, they stay halves
        factors = factors_of(pixels, filters, conv)
        co, r, s = (te.reduce_axis((0, extent)) for extent in (outer, conv.r, conv.s))
        ci = te.reduce_axis((0, inner), "ci")

        def chain(n: Expr, block: Expr, p: Expr, q: Expr, c: Expr, i: Expr, j: Expr, lane: Expr) -> Expr:
            value, weight = factors(SumPlace(n, block, p, q, lane), c, i, j, ci)
            return te.sum(value * weight, axis=[ci])

        shape = (conv.n, blocks, *rows_and_columns(conv, joins_rows(conv)))
        chains = te.compute((*shape, outer, conv.r, conv.s, t), chain, name=CHAIN)

        def element(n: Expr, block: Expr, p: Expr, q: Expr, lane: Expr) -> Expr:
            return te.sum(chains[n, block, p, q, co, r, s, lane].astype("float32"), axis=[co, r, s])

        return tail(out_of_blocks(te.compute((*shape, t), element, name="conv"), conv))

    def space(self, conv: Conv, target: Target) -> Sequence[Decisions]:
        """Return register tiles that leave room for their chains, and orders of the loops around them."""
        unit = vector_unit(target)
        unit = replace(unit, registers=unit.registers * 2 // 3)
        return dividing(shared_filter_tiles(conv, target, unit), conv)
