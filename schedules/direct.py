"""Direct convolution: the textbook sliding window, only parallelised."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tvm import te
from tvm.ir import Expr
from tvm.s_tir import Schedule

from dlas.schedules.loops.columns import column_tiles, compute_columns_in_registers
from dlas.schedules.loops.numbers import converted
from dlas.schedules.loops.thread_blocks import block_tiles, compute_in_thread_blocks
from dlas.schedules.loops.transformations import (
    accumulate_at,
    only_nchw,
    output_block,
    pad,
    schedule_padding,
    spread,
    start_once,
)
from dlas.stack import Algorithm, Conv, Decisions, Tail, Target


@dataclass(frozen=True)
class Direct(Algorithm):
    """Slide every filter over the input, in NCHW, with the loops in the order of the formula.

    Only threads are used to make it faster: no tiles, no vectors, no change of
    data layout.  It is the baseline of the other algorithms, and computes the
    convolutions that they decline.

    References
    ----------
    DLAS paper, sections 3.4 (direct) and 4.4 (the minimal schedule).
    """

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
