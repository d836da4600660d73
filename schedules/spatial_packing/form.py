"""What the forms of spatial pack share: layouts, the format of filters, and loops around their blocks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
from tvm.ir.transform import Pass
from tvm.s_tir import Schedule

from dlas.schedules.loops.halves import CHAIN
from dlas.schedules.loops.registers import add_chains_at
from dlas.schedules.loops.remainders import REMAINDER_PASSES
from dlas.schedules.loops.transformations import (
    accumulate_at,
    inline,
    only_nchw,
    output_block,
    schedule_padding,
    spread,
    stage,
    start_once,
)
from dlas.schedules.loops.vectors import BLOCKS, blocked_layout, blocks_for
from dlas.schedules.spatial_packing.blocks import channels_together, filters_a_vector, kind_of_tile
from dlas.stack import Algorithm, Array, Conv, Decisions, Target


@dataclass(frozen=True)
class SpatialForm(Algorithm):
    """A form of spatial pack: ``compute`` says how it multiplies.

    Filters are packed when the network is compiled, [k / t, c / u, r, s, u, t]: the
    weights by which a block of t filters multiplies a pixel are contiguous.
    """

    layout: Literal["nchw", "blocked"] = "nchw"
    """Whether the input is packed at run time, or activations stay in blocks of channels."""

    def supports(self, conv: Conv) -> str | None:
        """Return why ``conv`` is declined: only if its layouts were chosen by another algorithm."""
        return only_nchw(conv)

    def layouts(self, conv: Conv, target: Target) -> tuple[str, str]:
        """Return blocked layouts with ``layout="blocked"``; no block has filters of several groups."""
        a_group = conv.k // conv.groups
        if self.layout == "nchw" or (conv.depthwise and a_group > 1):
            return "NCHW", "NCHW"
        apart = conv.groups > 1 and not conv.depthwise
        blocks = blocks_for(conv, target)
        written = _dividing(a_group) if apart else blocked_layout(conv.k, blocks)
        return blocked_layout(conv.c, blocks), written

    def laid_out(self, conv: Conv, target: Target) -> Conv:
        """Return ``conv`` in the layouts that this form reads and writes."""
        read, written = self.layouts(conv, target)
        return replace(conv, input_layout=read, output_layout=written)

    def pack(self, weight: Array, conv: Conv) -> tuple[Array, ...]:
        """Return the filters [k / t, c / groups / u, r, s, u, t]; t is 1 where vector lanes are columns.

        Zeros fill the last block.
        """
        t, u = filters_a_vector(conv), channels_together(conv)
        whole = np.pad(weight, [(0, -conv.k % t), (0, 0), (0, 0), (0, 0)])
        blocks = whole.reshape(-1, t, weight.shape[1] // u, u, conv.r, conv.s)
        return (blocks.transpose(0, 2, 4, 5, 3, 1),)

    def unpack(self, packed: Sequence[Array], conv: Conv) -> Array:
        """Return the weight [k, c / groups, r, s] of the filters that :meth:`pack` returned."""
        (blocks,) = packed
        whole = blocks.transpose(0, 5, 1, 4, 2, 3)
        return whole.reshape(-1, conv.c // conv.groups, conv.r, conv.s)[: conv.k]

    def schedule(self, schedule: Schedule, conv: Conv, target: Target) -> None:
        """Share among threads the packing of the input, then the sums, then the tail."""
        gpu = target.on_gpu
        inline(schedule, "unpack")
        inline(schedule, "corrected")
        output, blocks = output_block(schedule), stage(schedule, "conv")
        if schedule.get(output).name_hint != "conv":
            spread(schedule, output, len(conv.output_shape), gpu)
        if stage(schedule, CHAIN) is not None:
            add_chains_at(schedule, schedule.get_loops(blocks)[-1])
        spread(schedule, accumulate_at(schedule, blocks, 5, gpu), 5, gpu)
        start_once(schedule)
        tiles = stage(schedule, "tiles")
        if tiles is not None:
            spread(schedule, tiles, 6, gpu)
        schedule_padding(schedule, gpu)

    def space(self, conv: Conv, target: Target) -> Sequence[Decisions]:
        """Return register tiles, and orders of the loops around them."""
        return () if target.on_gpu else kind_of_tile(conv)[0](conv, target)

    def apply(self, schedule: Schedule, conv: Conv, target: Target, decisions: Decisions) -> None:
        """Accumulate tiles of the output in registers from the input as it is, and apply the tail there."""
        inline(schedule, "tiles")
        inline(schedule, "unpack")
        inline(schedule, "corrected")
        kind_of_tile(conv)[1](schedule, conv, decisions)

    def passes(self, conv: Conv, target: Target) -> Sequence[Pass]:
        """Return the passes that keep a narrower last tile in registers."""
        return REMAINDER_PASSES


def _dividing(channels: int) -> str:
    """Return the layout with the largest block that divides ``channels``; NCHW where none does."""
    block = next((block for block in BLOCKS if channels % block == 0), 0)
    return f"NCHW{block}c" if block else "NCHW"
