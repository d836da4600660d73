"""TE stages and loop transformations that several algorithms share."""

from __future__ import annotations

from collections.abc import Sequence

from tvm import te, tirx
from tvm.ir import Expr
from tvm.s_tir import Schedule
from tvm.s_tir.schedule import LoopRV, SBlockRV

from dlas.schedules.loops.numbers import border, converted
from dlas.stack import Conv, channel_block

THREADS_PER_BLOCK = 256
"""Threads of a GPU's thread block."""


def only_nchw(conv: Conv) -> str | None:
    """Return why an algorithm without blocked layouts declines ``conv``, or None."""
    if (conv.input_layout, conv.output_layout) != ("NCHW", "NCHW"):
        return f"reads and writes NCHW, not {conv.input_layout} and {conv.output_layout}"
    return None


def pad(x: te.Tensor, conv: Conv, dtype: str | None = None) -> te.Tensor:
    """Return the input, in ``conv.input_layout``, as padded stage ``pad``; its type is ``conv.padded_type``.

    ``x`` itself is returned where that changes nothing.

    Parameters
    ----------
    dtype : str, optional
        Another type, which holds the same numbers.

    Notes
    -----
    Depthwise convolutions in blocks of channels may inline the stage: rows outside are read at the
    edge and replaced, without a branch, since only unrolled loops know at compile time what is inside.
    """
    dtype = dtype or conv.padded_type
    if not any(conv.padding) and str(x.dtype) == dtype:
        return x
    top, left, bottom, right = conv.padding
    height, width = conv.h + top + bottom, conv.w + left + right
    value = border(conv, dtype)

    def point(n: Expr, c: Expr, i: Expr, j: Expr, *lane: Expr) -> Expr:
        inside = tirx.all(i >= top, i < conv.h + top, j >= left, j < conv.w + left)
        element = converted(x(n, c, i - top, j - left, *lane), dtype)
        return tirx.if_then_else(inside, element, value) if any(conv.padding) else element

    def of_a_block(n: Expr, c: Expr, i: Expr, j: Expr, lane: Expr) -> Expr:
        row, column = i - top, j - left
        at_edge = tirx.max(tirx.min(row, conv.h - 1), 0) if top or bottom else row
        element = converted(x(n, c, at_edge, column, lane), dtype)
        if top or bottom:
            # From `0 <= row < h` TVM would conclude that the row needs no edge, and both sides are read.
            element = tirx.Select(row == at_edge, element, value)
        inside = tirx.all(column >= 0, column < conv.w)
        return tirx.if_then_else(inside, element, value) if left or right else element

    n, c, _, _, *lanes = x.shape
    if conv.depthwise and lanes:
        return te.compute((n, c, height, width, *lanes), of_a_block, name="pad")
    return te.compute((n, c, height, width, *lanes), point, name="pad")


def thin(x: te.Tensor, conv: Conv) -> te.Tensor:
    """Return the pixels of the input that strides do not skip, as stage ``pad``."""

    def point(n: Expr, c: Expr, p: Expr, q: Expr, *lane: Expr) -> Expr:
        return converted(x(n, c, p * conv.strides[0], q * conv.strides[1], *lane), conv.padded_type)

    n, c, _, _, *lanes = x.shape
    return te.compute((n, c, conv.p, conv.q, *lanes), point, name="pad")


def in_blocks(x: te.Tensor, conv: Conv, block: int, dtype: str, thinned: bool, less: int = 0) -> te.Tensor:
    """Return the padded input [n, c / block, h, w, block] in ``dtype`` as stage ``pad``; ``x`` if it is that.

    Parameters
    ----------
    x : te.Tensor
        In ``conv.input_layout``, whose blocks, if it has such, are those asked for.
    block : int
        Channels of a block; padding fills the last one of an input in NCHW.
    thinned : bool
        Whether to keep only the pixels that strides do not skip, of a kernel 1x1 without padding.
    less : int
        What is subtracted from every integer.
    """
    blocked = channel_block(conv.input_layout)
    if blocked and not (any(conv.padding) or thinned) and str(x.dtype) == dtype:
        return x
    top, left, bottom, right = conv.padding
    height, width = (conv.p, conv.q) if thinned else (conv.h + top + bottom, conv.w + left + right)
    strides = conv.strides if thinned else (1, 1)
    outside = border(conv, dtype, less)

    def point(n: Expr, c: Expr, i: Expr, j: Expr, lane: Expr) -> Expr:
        row, column, channel = i * strides[0] - top, j * strides[1] - left, c * block + lane
        at = (n, c, row, column, lane) if blocked else (n, channel, row, column)
        inside = [i >= top, i < conv.h + top, j >= left, j < conv.w + left] if any(conv.padding) else []
        if not blocked and conv.c % block:
            inside.append(channel < conv.c)
        value = shifted(x(*at), dtype, less)
        return tirx.if_then_else(tirx.all(*inside), value, outside) if inside else value

    return te.compute((conv.n, -(-conv.c // block), height, width, block), point, name="pad")


def shifted(value: Expr, dtype: str, less: int) -> Expr:
    """Return an integer in another type, less a number."""
    return (value.astype("int32") - tirx.const(less, "int32")).astype(dtype) if less else value.astype(dtype)


def corrected(convolved: te.Tensor, added: Sequence[te.Tensor]) -> te.Tensor:
    """Return sums [n, k / t, p, q, t] plus a number a filter [k / t, t], as stage ``corrected``.

    ``convolved`` itself is returned where nothing is ``added``.
    """
    if not added:
        return convolved

    def point(n: Expr, k: Expr, p: Expr, q: Expr, lane: Expr) -> Expr:
        return convolved(n, k, p, q, lane) + added[0](k, lane)

    return te.compute(convolved.shape, point, name="corrected")


def stage(schedule: Schedule, name: str) -> SBlockRV | None:
    """Return the block of a stage, or None where the kernel has no such stage."""
    blocks = schedule.get_child_blocks(schedule.get_sblock("root"))
    return next((block for block in blocks if schedule.get(block).name_hint == name), None)


def out_of_blocks(convolved: te.Tensor, conv: Conv) -> te.Tensor:
    """Return blocks of filters in the output's layout, as stage ``unpack``.

    They are [n, k / t, p, q, t], or [n, k / t, 1, p q, t] with all pixels in one row.
    ``convolved`` itself is returned where it has the output's layout already.
    """
    *_, columns, t = (int(extent) for extent in convolved.shape)
    if channel_block(conv.output_layout) == t and columns == conv.q:
        return convolved

    def point(n: Expr, k: Expr, p: Expr, q: Expr, *lane: Expr) -> Expr:
        row, column = (p, q) if columns == conv.q else (0, p * conv.q + q)
        return convolved(n, k, row, column, *lane) if lane else convolved(n, k // t, row, column, k % t)

    return te.compute(conv.output_shape, point, name="unpack")


def inline(schedule: Schedule, name: str) -> None:
    """Inline a stage into its readers, unless it is the output."""
    block = stage(schedule, name)
    if block is not None and schedule.get(output_block(schedule)).name_hint != name:
        schedule.compute_inline(block)


def output_block(schedule: Schedule) -> SBlockRV:
    """Return the block that writes the finished output: the tail, or the convolution itself."""
    return schedule.get_child_blocks(schedule.get_sblock("root"))[-1]


def spread(schedule: Schedule, block: SBlockRV, points: int, gpu: bool) -> None:
    """Share a block's ``points`` outermost loops among a GPU's threads, or its first three among a CPU's."""
    if gpu:
        bind(schedule, block, points)
    else:
        parallelise(schedule, block, 3)


def parallelise(schedule: Schedule, block: SBlockRV, outer: int) -> LoopRV:
    """Fuse a block's ``outer`` outermost loops into a parallel one; return the next loop inside."""
    loops = schedule.get_loops(block)
    schedule.parallel(schedule.fuse(*loops[:outer]))
    return loops[outer]


def bind(schedule: Schedule, block: SBlockRV, outer: int, threads: int = THREADS_PER_BLOCK) -> None:
    """Bind a block's ``outer`` outermost loops to blocks of GPU threads, one iteration a thread."""
    points = schedule.fuse(*schedule.get_loops(block)[:outer])
    groups, thread = schedule.split(points, [None, threads])
    schedule.bind(groups, "blockIdx.x")
    schedule.bind(thread, "threadIdx.x")


def accumulate_at(schedule: Schedule, output: SBlockRV, points: int, gpu: bool) -> SBlockRV:
    """Compute each sum right before its tail is applied; return the block that writes the output.

    To be called before loops are parallelised: TVM does not see through loops that were
    fused and split.

    Parameters
    ----------
    schedule : tvm.s_tir.Schedule
        The sum is its block ``conv``.
    output : SBlockRV
        The block that writes the output; ``conv`` itself where there is no tail.
    points : int
        Its spatial loops.
    gpu : bool
        Whether to accumulate in a thread's registers.
    """
    convolution = schedule.get_sblock("conv")
    if schedule.get(output).name_hint == "conv":
        return in_registers(schedule, output, points) if gpu else output
    schedule.compute_at(convolution, schedule.get_loops(output)[points - 1], preserve_unit_loops=True)
    schedule.set_scope(convolution, 0, "local" if gpu else "global")
    return output


def in_registers(schedule: Schedule, block: SBlockRV, points: int) -> SBlockRV:
    """Accumulate in a GPU thread's registers; return the block that stores the sums to memory."""
    written = schedule.cache_write(block, 0, "local")
    schedule.compute_at(block, schedule.get_loops(written)[points - 1], preserve_unit_loops=True)
    return written


def start_once(schedule: Schedule) -> None:
    """Initialise the sum ``conv`` outside its innermost loops, which run over its terms."""
    convolution = schedule.get_sblock("conv")
    axes = schedule.get(convolution).iter_vars
    terms = sum(axis.iter_type == tirx.IterVar.CommReduce for axis in axes)
    schedule.decompose_reduction(convolution, schedule.get_loops(convolution)[-terms])


def schedule_padding(schedule: Schedule, gpu: bool) -> None:
    """Share padding among a CPU's threads; on a GPU inline it, so that every read tests for the border.

    Tests in the innermost loop made a depthwise convolution ten times slower on
    a CPU, while a second parallel loop costs microseconds.
    """
    padding = stage(schedule, "pad")
    if padding is None:
        return
    if gpu:
        schedule.compute_inline(padding)
    else:
        parallelise(schedule, padding, 3)
