"""Spatial pack convolution: input and filters packed so that what is used together is contiguous."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar, Literal

import numpy as np
from tvm import te, tirx
from tvm.ir import Expr
from tvm.ir.transform import Pass
from tvm.s_tir import Schedule

from dlas.schedules.loops.columns import column_tiles, compute_columns_in_registers
from dlas.schedules.loops.depthwise import compute_channels_in_registers, depthwise_tiles
from dlas.schedules.loops.dot_products import TAPS, ByDotProducts, dot_products, forms_of, tap_products
from dlas.schedules.loops.filter_tiles import (
    dividing,
    filters_a_block,
    pointwise,
    shared_filter_tiles,
    thins,
)
from dlas.schedules.loops.halves import CHAIN, HALF, LONGEST_CHAIN, multiplies_halves
from dlas.schedules.loops.numbers import converted
from dlas.schedules.loops.registers import DotSums, add_chains_at, compute_filters_in_registers
from dlas.schedules.loops.remainders import REMAINDER_PASSES
from dlas.schedules.loops.transformations import (
    accumulate_at,
    corrected,
    in_blocks,
    inline,
    only_nchw,
    out_of_blocks,
    output_block,
    pad,
    schedule_padding,
    spread,
    stage,
    start_once,
    thin,
)
from dlas.schedules.loops.vectors import BLOCKS, FEWEST, blocked_layout, divisors, vector_unit
from dlas.stack import Algorithm, Array, Conv, Decisions, Tail, Target, channel_block

ROWS = 2
COLUMNS = 8
"""The largest tile of the input, in rows and columns of the output."""
Space = Callable[[Conv, Target], Sequence[Decisions]]
"""Gives the points of a design space, the best guess first."""
Apply = Callable[[Schedule, Conv, Decisions], None]
"""Transforms loops as one point of that space says."""


@dataclass(frozen=True)
class SpatialPack(Algorithm):
    """Compute filters in blocks from packed filters and a packed input.

    Filters are packed when the network is compiled, [k / t, c / u, r, s, u, t]: the
    weights by which a block of t filters multiplies a pixel are contiguous.

    Parameters
    ----------
    layout : {"nchw", "blocked"}
        ``nchw`` reads and writes NCHW, as in the paper, and packs the input at run
        time into tiles, each with all that a tile of the output reads.
        ``blocked`` keeps activations in a blocked layout (NCHW16c) from one layer to
        the next, so that nothing is packed at run time.

    References
    ----------
    DLAS paper, sections 3.4 (spatial pack) and 4.4 (the minimal schedule).
    """

    layout: Literal["nchw", "blocked"] = "nchw"

    def for_layer(self, conv: Conv, target: Target) -> Algorithm:
        """Return the form that multiplies by the target's dot products, where it has such."""
        if multiplies_halves(conv, target):
            return self._in_halves(conv)
        dots = dot_products(conv, target)
        if dots is None:
            return self
        read, written = self.layouts(conv)
        if tap_products(replace(conv, input_layout=read, output_layout=written), target):
            return _ByTaps(self.layout)
        packed = _OF_BYTES[dots](self.layout)
        read, written = packed.layouts(conv)
        fits = packed.takes(replace(conv, input_layout=read, output_layout=written))
        return packed if fits else self

    def _in_halves(self, conv: Conv) -> Algorithm:
        """Return the form that adds chains of halves, where it takes the convolution."""
        chosen = _InHalves(self.layout)
        read, written = self.layouts(conv)
        return chosen if chosen.takes(replace(conv, input_layout=read, output_layout=written)) else self

    def supports(self, conv: Conv) -> str | None:
        """Return why ``conv`` is declined: only if its layouts were chosen by another algorithm."""
        return only_nchw(conv)

    def layouts(self, conv: Conv) -> tuple[str, str]:
        """Return blocked layouts with ``layout="blocked"``; no block has filters of several groups."""
        a_group = conv.k // conv.groups
        if self.layout == "nchw" or (conv.depthwise and a_group > 1):
            return "NCHW", "NCHW"
        apart = conv.groups > 1 and not conv.depthwise
        return blocked_layout(conv.c), _dividing(a_group) if apart else blocked_layout(conv.k)

    def pack(self, weight: Array, conv: Conv) -> tuple[Array, ...]:
        """Return the filters [k / t, c / groups / u, r, s, u, t]; t is 1 where vector lanes are columns.

        Zeros fill the last block.
        """
        t, u = _filters_a_vector(conv), _channels_together(conv)
        whole = np.pad(weight, [(0, -conv.k % t), (0, 0), (0, 0), (0, 0)])
        blocks = whole.reshape(-1, t, weight.shape[1] // u, u, conv.r, conv.s)
        return (blocks.transpose(0, 2, 4, 5, 3, 1),)

    def unpack(self, packed: Sequence[Array], conv: Conv) -> Array:
        """Return the weight [k, c / groups, r, s] of the filters that :meth:`pack` returned."""
        (blocks,) = packed
        whole = blocks.transpose(0, 5, 1, 4, 2, 3)
        return whole.reshape(-1, conv.c // conv.groups, conv.r, conv.s)[: conv.k]

    def compute(self, x: te.Tensor, packed: Sequence[te.Tensor], conv: Conv, tail: Tail) -> te.Tensor:
        """Return the finished output of ``x``, both in the layouts that ``conv`` names."""
        (filters,) = packed
        blocks, outer, _, _, inner, t = (int(extent) for extent in filters.shape)
        pixel = self._reader(x, conv)
        co, ci = te.reduce_axis((0, outer), "co"), te.reduce_axis((0, inner), "ci")
        r, s = te.reduce_axis((0, conv.r), "r"), te.reduce_axis((0, conv.s), "s")
        a_group, joined = conv.k // conv.groups, _joins_rows(conv)

        def element(n: Expr, block: Expr, p: Expr, q: Expr, lane: Expr) -> Expr:
            p, q = (q // conv.q, q % conv.q) if joined else (p, q)
            group = (block * t + (lane if t > a_group else 0)) // a_group if conv.groups > 1 else 0
            value = pixel(n, group * (outer * inner) + co * inner + ci, p, q, r, s)
            weight = filters[block, co, r, s, ci, lane]
            product = converted(value, conv.accumulator_type) * converted(weight, conv.accumulator_type)
            return te.sum(product, axis=[co, r, s, ci])

        grid = (1, conv.p * conv.q) if joined else (conv.p, conv.q)
        shape = (conv.n, blocks, *grid, t)
        return tail(out_of_blocks(te.compute(shape, element, name="conv"), conv))

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
        return () if target.on_gpu else _kind_of_tile(conv)[0](conv, target)

    def apply(self, schedule: Schedule, conv: Conv, target: Target, decisions: Decisions) -> None:
        """Accumulate tiles of the output in registers from the input as it is, and apply the tail there."""
        inline(schedule, "tiles")
        inline(schedule, "unpack")
        inline(schedule, "corrected")
        _kind_of_tile(conv)[1](schedule, conv, decisions)

    def passes(self, conv: Conv, target: Target) -> Sequence[Pass]:
        """Return the passes that keep a narrower last tile in registers."""
        return REMAINDER_PASSES

    def _reader(self, x: te.Tensor, conv: Conv) -> Callable[..., Expr]:
        """Return the function from (n, channel, p, q, r, s) to the input element under that weight."""
        block = channel_block(conv.input_layout)
        if _joins_rows(conv) and thins(conv):
            x, conv = thin(x, conv), replace(conv, h=conv.p, w=conv.q, strides=(1, 1))
        padded = pad(x, conv)
        if self.layout == "nchw":
            return pack_input(padded, conv)

        def pixel(n: Expr, c: Expr, p: Expr, q: Expr, r: Expr, s: Expr) -> Expr:
            i, j = p * conv.strides[0] + r * conv.dilation[0], q * conv.strides[1] + s * conv.dilation[1]
            return padded(n, c // block, i, j, c % block) if block else padded(n, c, i, j)

        return pixel


class _InHalves(SpatialPack):
    """Spatial pack of halves: products of the channels that are packed together are added in float16."""

    first_sums: ClassVar[str | None] = HALF

    def for_layer(self, conv: Conv, target: Target) -> Algorithm:
        """Return itself, which was chosen for the layer."""
        return self

    def takes(self, conv: Conv) -> bool:
        """Whether vector lanes are filters, and a chain is worth its addition."""
        by_filters = _kind_of_tile(conv) == (shared_filter_tiles, compute_filters_in_registers)
        return by_filters and 4 <= _channels_together(conv) <= LONGEST_CHAIN

    def compute(self, x: te.Tensor, packed: Sequence[te.Tensor], conv: Conv, tail: Tail) -> te.Tensor:
        """Return the finished output of ``x``, both in the layouts that ``conv`` names."""
        (filters,) = packed
        blocks, outer, _, _, inner, t = (int(extent) for extent in filters.shape)
        pixel = self._reader(x, replace(conv, accumulator_type=HALF))
        co, r, s = (te.reduce_axis((0, extent)) for extent in (outer, conv.r, conv.s))
        ci = te.reduce_axis((0, inner), "ci")
        a_group, joined = conv.k // conv.groups, _joins_rows(conv)

        def chained(n: Expr, block: Expr, p: Expr, q: Expr, c: Expr, i: Expr, j: Expr, lane: Expr) -> Expr:
            p, q = (q // conv.q, q % conv.q) if joined else (p, q)
            group = (block * t + (lane if t > a_group else 0)) // a_group if conv.groups > 1 else 0
            value = pixel(n, group * (outer * inner) + c * inner + ci, p, q, i, j)
            return te.sum(value * filters[block, c, i, j, ci, lane], axis=[ci])

        grid = (1, conv.p * conv.q) if joined else (conv.p, conv.q)
        shape = (conv.n, blocks, *grid)
        chains = te.compute((*shape, outer, conv.r, conv.s, t), chained, name=CHAIN)

        def element(n: Expr, block: Expr, p: Expr, q: Expr, lane: Expr) -> Expr:
            return te.sum(chains[n, block, p, q, co, r, s, lane].astype("float32"), axis=[co, r, s])

        return tail(out_of_blocks(te.compute((*shape, t), element, name="conv"), conv))

    def space(self, conv: Conv, target: Target) -> Sequence[Decisions]:
        """Return register tiles that leave room for their chains, and orders of the loops around them."""
        unit = vector_unit(target)
        unit = replace(unit, registers=unit.registers * 2 // 3)
        return dividing(shared_filter_tiles(conv, target, unit), conv)


class _BytesPack(ByDotProducts, SpatialPack):
    """Spatial pack of bytes: the channels that a dot product adds are contiguous.

    Filters are packed [k / t, c / u, r, s, u / d, t, d], with zeros beyond the last channel, for
    dot products of d terms; the input, as stage ``pad``, in blocks of u channels.  Where that is less
    by an offset, sums of the filters' weights times it are packed too, [k / t, t].
    """

    def takes(self, conv: Conv) -> bool:
        """Whether vectors of filters and dot products have no channels of two groups."""
        whole = conv.groups == 1 or (conv.c // conv.groups) % self.dots.terms == 0
        return whole and not conv.depthwise and filters_a_block(conv) in BLOCKS

    def layouts(self, conv: Conv) -> tuple[str, str]:
        """Return blocked layouts with ``layout="blocked"``, of four channels where there are fewer."""
        read, written = super().layouts(conv)
        few = self.layout == "blocked" and read == "NCHW" and conv.groups == 1 and conv.c > 1
        return f"NCHW{FEWEST}c" if few else read, written

    def pack(self, weight: Array, conv: Conv) -> tuple[Array, ...]:
        """Return the filters [k / t, c / groups / u, r, s, u / d, t, d], and what offsets take off."""
        t, u, d = filters_a_block(conv), self._together(conv), self.dots.terms
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
        thinned, joined = pointwise(conv) and thins(conv), pointwise(conv)
        block = channel_block(conv.input_layout) or self._together(conv)
        laid = in_blocks(x, conv, block, self.dots.read, thinned, self.dots.offset)
        strides = (1, 1) if thinned else conv.strides
        extents = {"co": outer, "r": conv.r, "s": conv.s, "ci": inner, "term": d}
        co, r, s, ci, term = axes = [te.reduce_axis((0, extent), name) for name, extent in extents.items()]
        a_group = conv.k // conv.groups

        def element(n: Expr, k: Expr, p: Expr, q: Expr, lane: Expr) -> Expr:
            p, q = (q // conv.q, q % conv.q) if joined else (p, q)
            i, j = p * strides[0] + r * conv.dilation[0], q * strides[1] + s * conv.dilation[1]
            at = (co, ci * d + term)
            if conv.groups > 1:
                together = (k * t // a_group * outer + co) * inner + ci  # d channels, which are in one block
                at = (together // (block // d), together % (block // d) * d + term)
            value, weight = laid(n, at[0], i, j, at[1]), filters[k, co, r, s, ci, lane, term]
            product = converted(value, conv.accumulator_type) * converted(weight, conv.accumulator_type)
            return te.sum(product, axis=axes)

        grid = (1, conv.p * conv.q) if joined else (conv.p, conv.q)
        convolved = te.compute((conv.n, blocks, *grid, t), element, name="conv")
        return tail(out_of_blocks(corrected(convolved, added), conv))

    def space(self, conv: Conv, target: Target) -> Sequence[Decisions]:
        """Return register tiles of dot products, and orders of the loops around them."""
        return dividing(shared_filter_tiles(conv, target, self.dots.unit(target)), conv)

    def apply(self, schedule: Schedule, conv: Conv, target: Target, decisions: Decisions) -> None:
        """Accumulate tiles of the output in registers by dot products, and apply the tail there."""
        inline(schedule, "unpack")
        inline(schedule, "corrected")
        compute_filters_in_registers(schedule, conv, decisions, DotSums(self.dots, target))

    def _together(self, conv: Conv) -> int:
        """Return u: the channels of a block, or those that all groups have whole numbers of."""
        block = channel_block(conv.input_layout) or FEWEST
        return block if conv.groups == 1 else math.gcd(conv.c // conv.groups, block)


_OF_BYTES = forms_of(_BytesPack)


class _ByTaps(ByDotProducts, SpatialPack):
    """Depthwise convolution of bytes in blocks of channels: dot products add four columns of each channel.

    Filters are packed [k / t, r, s / d, t, d], with zeros beyond the last column.
    """

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
        whole = [point for point in depthwise_tiles(conv, target) if point["lanes"] == filters_a_block(conv)]
        points = dividing(whole, conv)
        return points or [{**whole[0], "columns": 1}]

    def apply(self, schedule: Schedule, conv: Conv, target: Target, decisions: Decisions) -> None:
        """Accumulate a tile of one row and one block of channels in registers by dot products."""
        compute_channels_in_registers(schedule, conv, decisions, DotSums(self.dots, target))


def _dividing(channels: int) -> str:
    """Return the layout with the largest block that divides ``channels``; NCHW where none does."""
    block = next((block for block in BLOCKS if channels % block == 0), 0)
    return f"NCHW{block}c" if block else "NCHW"


def _channels_together(conv: Conv) -> int:
    """Return u, the channels whose weights are contiguous: it divides a group's channels and a block."""
    channels, block = conv.c // conv.groups, channel_block(conv.input_layout)
    return math.gcd(channels, block) if block else divisors(channels, BLOCKS[0])[-1]


def _filters_a_vector(conv: Conv) -> int:
    """Return the filters of a block, or 1 where there are too few to fill vector lanes."""
    filters = filters_a_block(conv)
    return filters if filters >= FEWEST else 1


def _kind_of_tile(conv: Conv) -> tuple[Space, Apply]:
    """Return the design space and the schedule for the axis that can fill vector lanes."""
    if _filters_a_vector(conv) == 1:
        return column_tiles, compute_columns_in_registers
    if conv.depthwise and channel_block(conv.output_layout):
        return depthwise_tiles, compute_channels_in_registers
    return shared_filter_tiles, compute_filters_in_registers


def _joins_rows(conv: Conv) -> bool:
    """Whether the sum has all pixels in one row, so that tiles cross from one row into the next."""
    return pointwise(conv) and _kind_of_tile(conv) == (shared_filter_tiles, compute_filters_in_registers)


def pack_input(padded: te.Tensor, conv: Conv) -> Callable[..., Expr]:
    """Pack the input in stage ``tiles``; return the function from (n, c, p, q, r, s) to its element.

    The stage is [n, p / rows, q / columns, c, height, width].  A tile holds all that a
    tile of the output reads, so neighbouring tiles overlap.  Beyond the input's edge a
    tile holds zeros, which only contribute to outputs that are dropped.
    """
    rows, columns = min(ROWS, conv.p), min(COLUMNS, conv.q)
    height = (rows - 1) * conv.strides[0] + (conv.r - 1) * conv.dilation[0] + 1
    width = (columns - 1) * conv.strides[1] + (conv.s - 1) * conv.dilation[1] + 1
    _, _, h, w = padded.shape

    def element(n: Expr, pt: Expr, qt: Expr, c: Expr, i: Expr, j: Expr) -> Expr:
        row, column = pt * rows * conv.strides[0] + i, qt * columns * conv.strides[1] + j
        there = tirx.all(row < h, column < w)
        return tirx.if_then_else(there, padded[n, c, row, column], tirx.const(0, padded.dtype))

    grid = (conv.n, -(-conv.p // rows), -(-conv.q // columns))
    tiles = te.compute((*grid, conv.c, height, width), element, name="tiles")

    def pixel(n: Expr, c: Expr, p: Expr, q: Expr, r: Expr, s: Expr) -> Expr:
        i = p % rows * conv.strides[0] + r * conv.dilation[0]
        j = q % columns * conv.strides[1] + s * conv.dilation[1]
        return tiles(n, p // rows, q // columns, c, i, j)

    return pixel
