"""Register tiling: sums of neighbouring outputs stay in vector registers until they are finished."""

from __future__ import annotations

from collections.abc import Sequence

from tvm import tirx
from tvm.s_tir import Schedule
from tvm.s_tir.schedule import LoopRV, SBlockRV

from dlas.schedules.loops.filter_tiles import filters_a_block
from dlas.schedules.loops.transformations import output_block, parallelise, stage
from dlas.stack import Conv, Decisions, channel_block


def compute_filters_in_registers(schedule: Schedule, conv: Conv, decisions: Decisions) -> None:
    """Accumulate a tile of blocks of filters and columns in registers, and apply the tail there.

    The sum is stage ``conv`` [n, k / t, p, q, t] with any reduction axes, which keep their order.
    Each task pads the input that it reads, which stays in its core's cache.
    ``decisions`` are a point of :func:`shared_filter_tiles`.
    """
    output, convolution = output_and_sum(schedule)
    tasks, around, inner = _tile_blocks(schedule, output, conv, decisions)
    schedule.compute_at(convolution, [*tasks, *around][-1], preserve_unit_loops=True)
    schedule.set_scope(convolution, 0, "local")
    pad_at(schedule, conv, tasks[-1])
    schedule.parallel(schedule.fuse(*tasks))
    sum_in_registers(schedule, convolution, 1 + len(around))
    if channel_block(conv.output_layout):
        unroll_vectors(schedule, inner)


def _tile_blocks(
    schedule: Schedule, output: SBlockRV, conv: Conv, decisions: Decisions
) -> tuple[list[LoopRV], ...]:
    """Split the output into tasks of tiles; return the loops over tasks, over tiles, and inside a tile."""
    n, block, row, column, *lane = schedule.get_loops(output)
    if not lane:
        block, *lane = schedule.split(block, [None, filters_a_block(conv)])
    blocks, block, lane = split_blocks(schedule, block, lane[0], decisions)
    if int(decisions["columns"]) > conv.q:
        column, row = schedule.fuse(row, column), schedule.add_unit_loop(n)
    columns, column = schedule.split(column, [None, int(decisions["columns"])])
    inner = [block, column, lane] if channel_block(conv.output_layout) else [block, lane, column]
    if "parts" not in decisions:  # nothing is padded: each tile is a task
        tasks, around = [n, *_ordered(decisions, blocks, row, columns)], []
    else:
        rows, row = schedule.split(row, [None, int(decisions["rows"])])
        parts, blocks = schedule.split(blocks, [int(decisions["parts"]), None])
        tasks, around = [n, rows, parts], _ordered(decisions, blocks, row, columns)
    schedule.reorder(*tasks, *around, *inner)
    return tasks, around, inner


def compute_panel_in_registers(schedule: Schedule, conv: Conv, decisions: Decisions) -> None:
    """Apply im2col to a few rows of the output, then compute those rows tile by tile in registers.

    The sum is stage ``conv`` [n, k / t, p, q, t] over stage ``im2col`` [n, groups, p, at, q].
    Rows are shared among threads.  ``decisions`` are a point of :func:`panel_tiles`.
    """
    output, convolution = output_and_sum(schedule)
    n, block, row, column, *lane = schedule.get_loops(output)
    if not lane:
        block, *lane = schedule.split(block, [None, filters_a_block(conv)])
    rows, row = schedule.split(row, [None, int(decisions["rows"])])
    blocks, block, lane = split_blocks(schedule, block, lane[0], decisions)
    columns, column = schedule.split(column, [None, int(decisions["columns"])])
    tiles = _ordered(decisions, blocks, row, columns)
    schedule.reorder(n, rows, *tiles, block, lane, column)
    schedule.compute_at(convolution, tiles[-1], preserve_unit_loops=True)
    schedule.set_scope(convolution, 0, "local")
    patches = stage(schedule, "im2col")
    if conv.r * conv.s == 1 and conv.strides == (1, 1):
        schedule.compute_inline(patches)
    else:
        schedule.compute_at(patches, rows, preserve_unit_loops=True)
        schedule.vectorize(schedule.get_loops(patches)[-1])
    schedule.parallel(schedule.fuse(n, rows))
    sum_in_registers(schedule, convolution, 4)
    pad_by_all_threads(schedule, conv)


def _ordered(decisions: Decisions, blocks: LoopRV, row: LoopRV, columns: LoopRV) -> list[LoopRV]:
    """Return the loops over tiles, outermost first.

    ``filters`` reads each block's weights once, ``rows`` each input row, ``columns`` each tile's input.
    """
    orders = {
        "filters": [blocks, row, columns],
        "rows": [row, blocks, columns],
        "columns": [row, columns, blocks],
    }
    return orders[str(decisions["order"])]


def split_blocks(
    schedule: Schedule, block: LoopRV, lane: LoopRV, decisions: Decisions
) -> tuple[LoopRV, LoopRV, LoopRV]:
    """Split a block loop; return the loops over tiles, over blocks of a tile, and over lanes of a block."""
    blocks, block = schedule.split(block, [None, int(decisions.get("filters", 1))])
    if schedule.get(lane).extent == int(decisions["lanes"]):
        return blocks, block, lane
    parts, lane = schedule.split(lane, [None, int(decisions["lanes"])])
    schedule.reorder(blocks, parts, block)
    return schedule.fuse(blocks, parts), block, lane


def output_and_sum(schedule: Schedule) -> tuple[SBlockRV, SBlockRV]:
    """Return the block that writes the output and the block of the sum, which are made distinct."""
    output = output_block(schedule)
    if schedule.get(output).name_hint == "conv":
        return schedule.cache_write(output, 0, "local"), output
    return output, stage(schedule, "conv")


def sum_in_registers(
    schedule: Schedule, convolution: SBlockRV, outside: int, vector: int = -1
) -> list[LoopRV]:
    """Move the reduction loops outside a tile, whose accumulators stay in registers; return those loops.

    Parameters
    ----------
    schedule : tvm.s_tir.Schedule
    convolution : SBlockRV
    outside : int
        Loops around the tile.
    vector : int
        Which of the spatial loops is vectorised; by default the last.
    """
    points = sum(axis.iter_type != tirx.IterVar.CommReduce for axis in schedule.get(convolution).iter_vars)
    loops = schedule.get_loops(convolution)[outside:]
    tile, terms = _last(loops[:points], vector), loops[points:]
    schedule.reorder(*terms, *tile)
    unroll_vectors(schedule, tile)
    start = schedule.decompose_reduction(convolution, terms[0])
    unroll_vectors(schedule, schedule.get_loops(start)[outside:])
    return list(terms)


def _last(loops: Sequence[LoopRV], which: int) -> list[LoopRV]:
    """Return ``loops`` with one of them moved to the end."""
    return [loop for loop in loops if loop is not loops[which]] + [loops[which]]


def pad_at(schedule: Schedule, conv: Conv, loop: LoopRV) -> None:
    """Pad inside a loop what one of its iterations reads, in vectors where channels are contiguous."""
    padding = stage(schedule, "pad")
    if padding is not None:
        schedule.compute_at(padding, loop, preserve_unit_loops=True)
        if channel_block(conv.input_layout):
            schedule.vectorize(schedule.get_loops(padding)[-1])


def pad_by_all_threads(schedule: Schedule, conv: Conv) -> None:
    """Share padding among threads, in vectors where channels are contiguous."""
    padding = stage(schedule, "pad")
    if padding is not None:
        parallelise(schedule, padding, 3)
        if channel_block(conv.input_layout):
            schedule.vectorize(schedule.get_loops(padding)[-1])


def unroll_vectors(schedule: Schedule, loops: Sequence[LoopRV]) -> None:
    """Vectorise the last loop and unroll the others."""
    for loop in loops[:-1]:
        schedule.unroll(loop)
    schedule.vectorize(loops[-1])
