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
    """Compute a tile of blocks of filters and columns in registers, and finish it from there.

    The sum is stage ``conv`` [n, k / t, p, q, t] with any reductions, in the order in
    which they are to run.  Each thread pads what its share reads, which stays in its
    cache.  ``decisions`` are a point of :func:`shared_filter_tiles`.
    """
    output, convolution = output_and_sum(schedule)
    share, around, inner = _tile_blocks(schedule, output, conv, decisions)
    schedule.compute_at(convolution, [*share, *around][-1], preserve_unit_loops=True)
    schedule.set_scope(convolution, 0, "local")
    pad_at(schedule, conv, share[-1])
    schedule.parallel(schedule.fuse(*share))
    sum_in_registers(schedule, convolution, 1 + len(around))
    if channel_block(conv.output_layout):
        unroll_vectors(schedule, inner)


def _tile_blocks(
    schedule: Schedule, output: SBlockRV, conv: Conv, decisions: Decisions
) -> tuple[list[LoopRV], ...]:
    """Split the output into shares of tiles; return the loops over shares, tiles, and points of a tile."""
    n, block, row, column, *lane = schedule.get_loops(output)
    if not lane:
        block, *lane = schedule.split(block, [None, filters_a_block(conv)])
    blocks, block, lane = split_blocks(schedule, block, lane[0], decisions)
    if int(decisions["columns"]) > conv.q:
        column, row = schedule.fuse(row, column), schedule.add_unit_loop(n)
    columns, column = schedule.split(column, [None, int(decisions["columns"])])
    inner = [block, column, lane] if channel_block(conv.output_layout) else [block, lane, column]
    if "parts" not in decisions:  # nothing is padded: each tile is a share
        share, around = [n, *_ordered(decisions, blocks, row, columns)], []
    else:
        rows, row = schedule.split(row, [None, int(decisions["rows"])])
        parts, blocks = schedule.split(blocks, [int(decisions["parts"]), None])
        share, around = [n, rows, parts], _ordered(decisions, blocks, row, columns)
    schedule.reorder(*share, *around, *inner)
    return share, around, inner


def compute_panel_in_registers(schedule: Schedule, conv: Conv, decisions: Decisions) -> None:
    """Write out the patches of a few rows of the output, then compute those rows tile by tile in registers.

    The sum is stage ``conv`` [n, k / t, p, q, t] over stage ``im2col`` [n, groups, p, at, q].
    Each thread has its own rows.  ``decisions`` are a point of :func:`panel_tiles`.
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

    ``filters`` reads a block's weights once, ``rows`` an input row once, ``columns`` a tile's input once.
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
    """Return the loops over tiles of filters, over blocks of a tile, and over lanes of a block."""
    blocks, block = schedule.split(block, [None, int(decisions.get("filters", 1))])
    if schedule.get(lane).extent == int(decisions["lanes"]):
        return blocks, block, lane
    parts, lane = schedule.split(lane, [None, int(decisions["lanes"])])
    schedule.reorder(blocks, parts, block)
    return schedule.fuse(blocks, parts), block, lane


def output_and_sum(schedule: Schedule) -> tuple[SBlockRV, SBlockRV]:
    """Return the block that writes the output, and the one of the sum, which becomes another block."""
    output = output_block(schedule)
    if schedule.get(output).name_hint == "conv":
        return schedule.cache_write(output, 0, "local"), output
    return output, stage(schedule, "conv")


def sum_in_registers(
    schedule: Schedule, convolution: SBlockRV, outside: int, vector: int = -1
) -> list[LoopRV]:
    """Sum all points of a tile together, term by term; return the loops over terms.

    Parameters
    ----------
    schedule : tvm.s_tir.Schedule
    convolution : SBlockRV
    outside : int
        Loops around the tile.
    vector : int
        Which of the loops over points becomes a vector; the last one if it is not said.
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
    """Write what a turn of a loop reads of the padded input, in vectors where channels lie side by side."""
    padding = stage(schedule, "pad")
    if padding is not None:
        schedule.compute_at(padding, loop, preserve_unit_loops=True)
        if channel_block(conv.input_layout):
            schedule.vectorize(schedule.get_loops(padding)[-1])


def pad_by_all_threads(schedule: Schedule, conv: Conv) -> None:
    """Write the padded input by all threads, in vectors where channels lie next to each other."""
    padding = stage(schedule, "pad")
    if padding is not None:
        parallelise(schedule, padding, 3)
        if channel_block(conv.input_layout):
            schedule.vectorize(schedule.get_loops(padding)[-1])


def unroll_vectors(schedule: Schedule, loops: Sequence[LoopRV]) -> None:
    """Make the last loop a vector and write the others out."""
    for loop in loops[:-1]:
        schedule.unroll(loop)
    schedule.vectorize(loops[-1])
