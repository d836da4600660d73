"""Direct convolution: the textbook sliding window, only parallelised."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tvm import te
from tvm.ir import Expr
from tvm.s_tir import Schedule

from dlas.schedules.loops.columns import (
    column_tiles,
    compute_columns_by_dot_products,
    compute_columns_in_registers,
    dot_column_tiles,
    joined_rows,
)
from dlas.schedules.loops.dot_forms import ByDotProducts, forms_of, words_by_columns
from dlas.schedules.loops.dot_products import dot_products
from dlas.schedules.loops.numbers import converted
from dlas.schedules.loops.registers import DotSums
from dlas.schedules.loops.thread_blocks import block_tiles, compute_in_thread_blocks
from dlas.schedules.loops.transformations import (
    accumulate_at,
    inline,
    only_nchw,
    output_block,
    pad,
    schedule_padding,
    spread,
    stage,
    start_once,
)
from dlas.schedules.loops.words import (
    reader_of_words,
    row_of_words,
    schedule_words,
    weights_in_words,
    weights_out_of_words,
)
from dlas.stack import Algorithm, Array, Conv, Decisions, Tail, Target, stored_type


@dataclass(frozen=True)
class Direct(Algorithm):
    """Slide every filter over the input, in NCHW, with the loops in the order of the formula.

    Only threads are used to make it faster: no tiles, no vectors, and no change of data
    layout, except where the processor adds neighbouring channels by dot products.  It is the
    baseline of the other algorithms, and computes the convolutions that they decline.

    References
    ----------
    DLAS paper, sections 3.4 (direct) and 4.4 (the minimal schedule).
    """

    def for_layer(self, conv: Conv, target: Target) -> Algorithm:
        """Return the form that multiplies by the target's dot products, where it has such.

        Filters that read one channel each have no neighbouring channels to add, and classes derived
        from this one keep their own loops.
        """
        dots = dot_products(conv, target)
        return self if dots is None or conv.depthwise or type(self) is not Direct else _FORMS[dots]()

    def supports(self, conv: Conv) -> str | None:
        """Return why ``conv`` is declined: only layouts other than NCHW are."""
        return only_nchw(conv)

    def compute(self, x: te.Tensor, packed: Sequence[te.Tensor], conv: Conv, tail: Tail) -> te.Tensor:
        """Return the finished output [n, k, p, q] of ``x`` [n, c, h, w]."""
        (weight,) = packed
        padded = pad(x, conv)
        filters, channels = conv.k // conv.groups, conv.c // conv.groups
        c = te.reduce_axis((0, channels), "c")
        r = te.reduce_axis((0, conv.r), "r")
        s = te.reduce_axis((0, conv.s), "s")

        def point(n: Expr, k: Expr, p: Expr, q: Expr) -> Expr:
            row = p * conv.strides[0] + r * conv.dilation[0]
            column = q * conv.strides[1] + s * conv.dilation[1]
            pixel = padded[n, k // filters * channels + c, row, column]
            weights = converted(weight[k, c, r, s], conv.accumulator_type)
            return te.sum(converted(pixel, conv.accumulator_type) * weights, axis=[c, r, s])

        return tail(te.compute((conv.n, conv.k, conv.p, conv.q), point, name="conv"))

    def schedule(self, schedule: Schedule, conv: Conv, target: Target) -> None:
        """Share the output's elements among threads; each is summed right before its tail is applied."""
        gpu = target.on_gpu
        output = accumulate_at(schedule, output_block(schedule), 4, gpu)
        spread(schedule, output, 4, gpu)
        start_once(schedule)
        schedule_padding(schedule, gpu)

    def space(self, conv: Conv, target: Target) -> Sequence[Decisions]:
        """Return register tiles whose vector lanes are columns, and orders; or a GPU's thread blocks."""
        return block_tiles(conv, target) if target.on_gpu else column_tiles(conv, target)

    def apply(self, schedule: Schedule, conv: Conv, target: Target, decisions: Decisions) -> None:
        """Accumulate each tile of the output in registers, and apply the tail there."""
        if target.on_gpu:
            compute_in_thread_blocks(schedule, decisions)
            return
        compute_columns_in_registers(schedule, conv, decisions)


class _DirectByDotProducts(ByDotProducts, Direct):
    """The sliding window by dot products, which add neighbouring channels of each of several columns.

    The input is copied into words of d channels; filters are [k, c / groups / d, r, s, d], with zeros
    beyond the last channel, for dot products of d terms.
    """

    def pack(self, weight: Array, conv: Conv) -> tuple[Array, ...]:
        """Return the filters [k, c / groups / d, r, s, d], and what offsets take off."""
        filters = weights_in_words(weight, conv, self.dots)
        corrections = self.dots.corrections(weight.reshape(conv.k, -1))
        return filters.astype(self.dots.weights), *corrections

    def unpack(self, packed: Sequence[Array], conv: Conv) -> Array:
        """Return the weight [k, c / groups, r, s] of the filters that :meth:`pack` returned."""
        return weights_out_of_words(packed[0], conv).astype(stored_type(conv.weight_type))

    def compute(self, x: te.Tensor, packed: Sequence[te.Tensor], conv: Conv, tail: Tail) -> te.Tensor:
        """Return the finished output [n, k, p, q] of ``x`` [n, c, h, w]."""
        filters, *added = packed
        (rows, columns), row = joined_rows(conv, self.dots), row_of_words(conv)
        together = int(filters.shape[1])
        word = reader_of_words(x, conv, self.dots, max(columns - rows * row, 0))
        extents = {"co": together, "r": conv.r, "s": conv.s, "term": self.dots.terms}
        co, r, s, term = axes = [te.reduce_axis((0, extent), name) for name, extent in extents.items()]
        a_group = conv.k // conv.groups

        def point(n: Expr, k: Expr, first: Expr, _: Expr, at: Expr) -> Expr:
            number = (k // a_group * together if conv.groups > 1 else 0) + co
            pixel = self.dots.term(word(n, number, first * (rows * row), at, r, s), term)
            weight = converted(filters[k, co, r, s, term], conv.accumulator_type)
            return te.sum(converted(pixel, conv.accumulator_type) * weight, axis=axes)

        sums = te.compute((conv.n, conv.k, conv.p // rows, 1, columns), point, name="conv")

        def within(n: Expr, k: Expr, p: Expr, q: Expr) -> Expr:
            value = sums(n, k, p // rows, 0, p % rows * row + q)
            return value + added[0](k) if added else value

        return tail(te.compute(conv.output_shape, within, name="unpack"))

    def schedule(self, schedule: Schedule, conv: Conv, target: Target) -> None:
        """Share among threads the words, then the sums, then the tail."""
        inline(schedule, "unpack")
        spread(schedule, output_block(schedule), 4, gpu=False)
        spread(schedule, stage(schedule, "conv"), 5, gpu=False)
        start_once(schedule)
        schedule_padding(schedule, gpu=False)
        schedule_words(schedule, conv)

    def space(self, conv: Conv, target: Target) -> Sequence[Decisions]:
        """Return register tiles of dot products, and orders."""
        return dot_column_tiles(conv, target, self.dots)

    def apply(self, schedule: Schedule, conv: Conv, target: Target, decisions: Decisions) -> None:
        """Accumulate each tile of the output by dot products, and apply the tail there."""
        inline(schedule, "unpack")
        compute_columns_by_dot_products(schedule, conv, decisions, DotSums(self.dots, target))


_FORMS = forms_of(_DirectByDotProducts, words_by_columns)
