"""Direct convolution: the textbook sliding window, made parallel and nothing else."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from tvm import te, tirx

from dlas.convolution import Conv, Tail
from dlas.stack import Algorithm, Target

THREADS_PER_BLOCK = 256
"""Threads of a block on a GPU."""


@dataclass(frozen=True)
class Direct(Algorithm):
    """Slide every filter over the input, in NCHW, with the loops in the order of the formula.

    Only threads are used to make it faster: no tiles, no vectors, no change of
    data layout.  It is what the other algorithms are compared with, and what
    takes over where they decline.

    References
    ----------
    DLAS paper, sections 3.4 (direct) and 4.4 (the minimal schedule).
    """

    def supports(self, conv: Conv) -> str | None:
        """Return why ``conv`` is declined: only layouts other than NCHW are."""
        if (conv.input_layout, conv.output_layout) != ("NCHW", "NCHW"):
            return f"reads and writes NCHW, not {conv.input_layout} and {conv.output_layout}"
        return None

    def compute(self, x: Any, packed: Sequence[Any], conv: Conv, tail: Tail) -> Any:
        """Return the finished output [n, k, p, q] of ``x`` [n, c, h, w]."""
        (weight,) = packed
        padded = pad(x, conv)
        filters, channels = conv.k // conv.groups, conv.c // conv.groups
        c = te.reduce_axis((0, channels), "c")
        r = te.reduce_axis((0, conv.r), "r")
        s = te.reduce_axis((0, conv.s), "s")

        def point(n: Any, k: Any, p: Any, q: Any) -> Any:
            row = p * conv.strides[0] + r * conv.dilation[0]
            column = q * conv.strides[1] + s * conv.dilation[1]
            pixel = padded[n, k // filters * channels + c, row, column]
            product = pixel.astype(conv.accumulator_type) * weight[k, c, r, s].astype(conv.accumulator_type)
            return te.sum(product, axis=[c, r, s])

        return tail(te.compute((conv.n, conv.k, conv.p, conv.q), point, name="conv"))

    def schedule(self, schedule: Any, conv: Conv, target: Target) -> None:
        """Spread the output's points over threads; what leads to a point is computed where it is used."""
        gpu = target.description["kind"] != "llvm"
        output = schedule.get_child_blocks(schedule.get_sblock("root"))[-1]
        point = _bind_points(schedule, output) if gpu else _parallelise_rows(schedule, output)
        _accumulate_at(schedule, output, point, "local" if gpu else "global")
        if any(conv.padding):
            _schedule_padding(schedule, gpu)


def pad(x: Any, conv: Conv) -> Any:
    """Return ``x`` [n, c, h, w] with its border, as stage ``pad``; ``x`` itself where there is none."""
    top, left, bottom, right = conv.padding
    if not any(conv.padding):
        return x
    value = tirx.const(conv.padding_value, x.dtype)

    def point(n: Any, c: Any, i: Any, j: Any) -> Any:
        inside = tirx.all(i >= top, i < conv.h + top, j >= left, j < conv.w + left)
        return tirx.if_then_else(inside, x[n, c, i - top, j - left], value)

    return te.compute((conv.n, conv.c, conv.h + top + bottom, conv.w + left + right), point, name="pad")


def _parallelise_rows(schedule: Any, output: Any) -> Any:
    """Share the output's rows among the threads; return the loop over a row's points."""
    n, k, p, q = schedule.get_loops(output)[:4]
    schedule.parallel(schedule.fuse(n, k, p))
    return q


def _bind_points(schedule: Any, output: Any) -> Any:
    """Give every output point a GPU thread of its own; return the loop over a block's threads."""
    points = schedule.fuse(*schedule.get_loops(output)[:4])
    block, thread = schedule.split(points, [None, THREADS_PER_BLOCK])
    schedule.bind(block, "blockIdx.x")
    schedule.bind(thread, "threadIdx.x")
    return thread


def _accumulate_at(schedule: Any, output: Any, point: Any, scope: str) -> None:
    """Sum a point's products right where the point is finished, starting from zero once."""
    convolution = schedule.get_sblock("conv")
    if schedule.get(convolution).name_hint != schedule.get(output).name_hint:
        schedule.compute_at(convolution, point, preserve_unit_loops=True)
        schedule.set_scope(convolution, 0, scope)
    channel = schedule.get_loops(convolution)[-3]
    schedule.decompose_reduction(convolution, channel)


def _schedule_padding(schedule: Any, gpu: bool) -> None:
    """Write the padded input by all threads; on a GPU test for the border at every read instead.

    Tests in the innermost loop made a depthwise convolution ten times slower on
    a CPU, while a second parallel loop costs microseconds.
    """
    padding = schedule.get_sblock("pad")
    if gpu:
        schedule.compute_inline(padding)
    else:
        n, c, row, _ = schedule.get_loops(padding)
        schedule.parallel(schedule.fuse(n, c, row))
