"""Convolution as a matrix product of the filters and the input's patches (im2col)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from tvm import te
from tvm.ir import Expr
from tvm.ir.transform import Pass
from tvm.s_tir import Schedule

from dlas.schedules.loops.dot_forms import ByDotProducts, forms_of, words_by_filters
from dlas.schedules.loops.dot_products import dot_products
from dlas.schedules.loops.filter_tiles import dividing, filters_a_block, panel_tiles
from dlas.schedules.loops.numbers import converted
from dlas.schedules.loops.registers import DotSums, compute_panel_in_registers
from dlas.schedules.loops.remainders import REMAINDER_PASSES
from dlas.schedules.loops.thread_blocks import BlockTile, block_tiles, compute_in_thread_blocks
from dlas.schedules.loops.transformations import (
    accumulate_at,
    bind,
    corrected,
    inline,
    only_nchw,
    out_of_blocks,
    output_block,
    pad,
    schedule_padding,
    spread,
    stage,
    start_once,
)
from dlas.schedules.loops.vectors import BLOCKS
from dlas.schedules.loops.words import (
    reader_of_words,
    row_of_words,
    schedule_words,
    weights_in_words,
    weights_out_of_words,
)
from dlas.stack import Algorithm, Array, Conv, Decisions, Tail, Target


@dataclass(frozen=True)
class Gemm(Algorithm):
    """Multiply the filters [k, c r s] by the patches [c r s, p q] of the input, in NCHW.

    Patches overlap, so im2col copies the input up to r x s times.  The filters are
    packed into panels of t rows when the network is compiled, [k / t, c r s, t], so
    that the t weights of a panel's column are contiguous.

    References
    ----------
    DLAS paper, sections 3.4 (GEMM) and 4.4 (the minimal schedule).
    """

    def for_layer(self, conv: Conv, target: Target) -> Algorithm:
        """Return the form that multiplies by the target's dot products, where it has such.

        Classes derived from this one keep their own loops.
        """
        dots = dot_products(conv, target) if type(self) is Gemm else None
        return self if dots is None or filters_a_block(conv) not in BLOCKS else _FORMS[dots]()

    def supports(self, conv: Conv) -> str | None:
        """Return why ``conv`` is declined: only layouts other than NCHW are."""
        return only_nchw(conv)

    def pack(self, weight: Array, conv: Conv) -> tuple[Array, ...]:
        """Return the filters in panels [k / t, c / groups r s, t]."""
        return (weight.reshape(-1, filters_a_block(conv), weight[0].size).transpose(0, 2, 1),)

    def unpack(self, packed: Sequence[Array], conv: Conv) -> Array:
        """Return the weight [k, c / groups, r, s] of the panels [k / t, c / groups r s, t]."""
        (panels,) = packed
        return panels.transpose(0, 2, 1).reshape(conv.k, -1, conv.r, conv.s)

    def compute(self, x: te.Tensor, packed: Sequence[te.Tensor], conv: Conv, tail: Tail) -> te.Tensor:
        """Return the finished output [n, k, p, q] of ``x`` [n, c, h, w]."""
        (panels,) = packed
        patches = im2col(pad(x, conv), conv)
        filters_a_group, t = conv.k // conv.groups, int(panels.shape[2])
        at = te.reduce_axis((0, panels.shape[1]), "at")

        def element(n: Expr, panel: Expr, p: Expr, q: Expr, lane: Expr) -> Expr:
            patch = converted(patches[n, panel * t // filters_a_group, p, at, q], conv.accumulator_type)
            return te.sum(patch * converted(panels[panel, at, lane], conv.accumulator_type), axis=at)

        shape = (conv.n, conv.k // t, conv.p, conv.q, t)
        return tail(out_of_blocks(te.compute(shape, element, name="conv"), conv))

    def schedule(self, schedule: Schedule, conv: Conv, target: Target) -> None:
        """Share among threads im2col, then the matrix product, then the tail."""
        gpu = target.on_gpu
        inline(schedule, "unpack")
        inline(schedule, "corrected")
        spread(schedule, stage(schedule, "im2col"), 5, gpu)
        spread(schedule, output_block(schedule), 4, gpu)
        panels = accumulate_at(schedule, stage(schedule, "conv"), 5, gpu)
        spread(schedule, panels, 5, gpu)
        start_once(schedule)
        schedule_padding(schedule, gpu)

    def space(self, conv: Conv, target: Target) -> Sequence[Decisions]:
        """Return register tiles, rows that im2col writes at a time, and orders; or a GPU's thread blocks."""
        if target.on_gpu:
            return block_tiles(_product(conv), target, filters_a_block(conv)) if conv.groups == 1 else ()
        return panel_tiles(conv, target)

    def apply(self, schedule: Schedule, conv: Conv, target: Target, decisions: Decisions) -> None:
        """Apply im2col to a few rows at a time, and multiply their patches while they are cached.

        A GPU writes all patches first, and multiplies them from shared memory.
        """
        inline(schedule, "unpack")
        inline(schedule, "corrected")
        if target.on_gpu:
            compute_in_thread_blocks(schedule, decisions)
            bind(schedule, stage(schedule, "im2col"), 5, BlockTile.of(decisions).threads)
            schedule_padding(schedule, gpu=True)
            return
        compute_panel_in_registers(schedule, conv, decisions)

    def passes(self, conv: Conv, target: Target) -> Sequence[Pass]:
        """Return the passes that keep a narrower last tile in registers."""
        return REMAINDER_PASSES


class _GemmByDotProducts(ByDotProducts, Gemm):
    """The matrix product by dot products: rows of patches are of words of neighbouring channels.

    The filters are [k / t, c / groups / d r s, t, d], with zeros beyond the last channel, for dot
    products of d terms.
    """

    def pack(self, weight: Array, conv: Conv) -> tuple[Array, ...]:
        """Return the filters in panels [k / t, c / groups / d r s, t, d], and what offsets take off."""
        t, d = filters_a_block(conv), self.dots.terms
        rows = weights_in_words(weight, conv, self.dots).reshape(conv.k // t, t, -1, d)
        return rows.transpose(0, 2, 1, 3), *self.dots.corrections(weight.reshape(conv.k // t, t, -1))

    def unpack(self, packed: Sequence[Array], conv: Conv) -> Array:
        """Return the weight [k, c / groups, r, s] of the panels."""
        rows = packed[0].transpose(0, 2, 1, 3)
        return weights_out_of_words(rows.reshape(conv.k, -1, conv.r, conv.s, self.dots.terms), conv)

    def compute(self, x: te.Tensor, packed: Sequence[te.Tensor], conv: Conv, tail: Tail) -> te.Tensor:
        """Return the finished output [n, k, p, q] of ``x`` [n, c, h, w]."""
        panels, *added = packed
        count, rows, t, d = (int(extent) for extent in panels.shape)
        filters_a_group, window = conv.k // conv.groups, conv.r * conv.s
        word, row = reader_of_words(x, conv, self.dots), row_of_words(conv)

        def patch(n: Expr, group: Expr, p: Expr, at: Expr, q: Expr) -> Expr:
            number = group * (rows // window) + at // window
            return word(n, number, p * row, q, at // conv.s % conv.r, at % conv.s)

        patches = te.compute((conv.n, conv.groups, conv.p, rows, conv.q), patch, name="im2col")
        at, term = te.reduce_axis((0, rows), "at"), te.reduce_axis((0, d), "term")

        def element(n: Expr, panel: Expr, p: Expr, q: Expr, lane: Expr) -> Expr:
            value = self.dots.term(patches(n, panel * t // filters_a_group, p, at, q), term)
            weight = converted(panels[panel, at, lane, term], conv.accumulator_type)
            return te.sum(converted(value, conv.accumulator_type) * weight, axis=[at, term])

        shape = (conv.n, count, conv.p, conv.q, t)
        convolved = te.compute(shape, element, name="conv")
        return tail(out_of_blocks(corrected(convolved, added), conv))

    def schedule(self, schedule: Schedule, conv: Conv, target: Target) -> None:
        """Share among threads the words of the input, then im2col, the matrix product and the tail."""
        super().schedule(schedule, conv, target)
        schedule_words(schedule, conv)

    def space(self, conv: Conv, target: Target) -> Sequence[Decisions]:
        """Return register tiles of dot products, and rows that im2col writes at a time."""
        return dividing(panel_tiles(conv, target, self.dots.unit(target)), conv)

    def apply(self, schedule: Schedule, conv: Conv, target: Target, decisions: Decisions) -> None:
        """Apply im2col to a few rows at a time, and multiply their patches by dot products."""
        inline(schedule, "unpack")
        inline(schedule, "corrected")
        compute_panel_in_registers(schedule, conv, decisions, DotSums(self.dots, target))
        schedule_words(schedule, conv)


_FORMS = forms_of(_GemmByDotProducts, words_by_filters)


def _product(conv: Conv) -> Conv:
    """Return the product of filters and patches as a convolution of single pixels with a channel a row."""
    rows = conv.c // conv.groups * conv.r * conv.s
    plain: dict[str, Any] = {"strides": (1, 1), "dilation": (1, 1), "padding": (0, 0, 0, 0)}
    return replace(conv, c=rows, h=conv.p, w=conv.q, r=1, s=1, **plain)


def im2col(padded: te.Tensor, conv: Conv) -> te.Tensor:
    """Return the patches of each row of the output [n, groups, p, c / groups r s, q], as stage ``im2col``."""

    def element(n: Expr, group: Expr, p: Expr, at: Expr, q: Expr) -> Expr:
        channels, window = conv.c // conv.groups, conv.r * conv.s
        row = p * conv.strides[0] + at // conv.s % conv.r * conv.dilation[0]
        column = q * conv.strides[1] + at % conv.s * conv.dilation[1]
        return padded[n, group * channels + at // window, row, column]

    rows = conv.c // conv.groups * conv.r * conv.s
    return te.compute((conv.n, conv.groups, conv.p, rows, conv.q), element, name="im2col")
