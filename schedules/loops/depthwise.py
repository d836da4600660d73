"""Depthwise convolution in a blocked layout: vector lanes are the channels of a block."""

from __future__ import annotations

from collections.abc import Sequence

from tvm.s_tir import Schedule

from dlas.schedules.loops.filter_tiles import element_bytes, filters_a_block, row_tiles
from dlas.schedules.loops.registers import (
    DotSums,
    fuse_tasks,
    output_and_sum,
    pad_at,
    split_blocks,
    sum_in_registers,
    unroll_vectors,
)
from dlas.schedules.loops.transformations import inline
from dlas.schedules.loops.vectors import IN_FLIGHT, divisors, vector_unit
from dlas.stack import Conv, Decisions, Target

SLAB_BYTES = 40_000
"""Largest size of a block's padded rows, so that they stay near the first-level cache."""
SUMS = 7
"""Fewest vector accumulators that keep the multipliers busy, and leave registers for inputs."""
ABOUT = 4
"""So many accumulators more matter less than whole blocks of channels."""
NARROW = 3
"""Columns of the widest kernel whose inputs leave registers for whole blocks of channels."""


def depthwise_tiles(conv: Conv, target: Target, copied: bool = False) -> Sequence[Decisions]:
    """Return rows of a task and columns of a tile, the best guess first.

    Parameters
    ----------
    copied : bool
        Whether the rows share a padded copy of their input.  Without one, registers also hold the inputs
        of a row of the kernel, each of which serves several columns.
    """
    unit, t = vector_unit(target), filters_a_block(conv)
    vectors = {lanes: unit.vectors(lanes) for lanes in unit.lane_choices(t)}
    tiles = [(lanes, width) for lanes in vectors for width, _, _ in row_tiles(conv, unit, vectors[lanes])]
    copy_sums = max(unit.registers // 2 - 1, IN_FLIGHT - 1)  # every sum has an input of its own beside it
    wide = conv.s > NARROW

    def guess(tile: tuple[int, int]) -> tuple[int, ...]:
        lanes, width = tile
        sums = vectors[lanes] * width
        if copied:
            return abs(sums - copy_sums), -lanes
        return max(SUMS - sums, 0), max(sums - SUMS, 0) // ABOUT, lanes if wide else -lanes, sums

    tiles.sort(key=guess)
    padded_row = element_bytes(conv.input_type) * t * (conv.w + conv.padding[1] + conv.padding[3])
    most = (SLAB_BYTES // padded_row - conv.r) // conv.strides[0] + 1
    rows = sorted(divisors(conv.p, conv.p), key=lambda rows: (rows > max(most, 1), abs(rows - most)))
    return [{"rows": r, "lanes": lanes, "columns": w} for lanes, w in tiles[:4] for r in rows[:4]]


def compute_channels_in_registers(
    schedule: Schedule, conv: Conv, decisions: Decisions, by: DotSums | None = None
) -> None:
    """Accumulate a tile of one row and one block of channels in registers.

    The sum is stage ``conv`` [n, k / t, p, q, t].  With ``by`` products are added by dot products, from a
    padded copy of a few rows of the input, which stays in the first-level cache.  Without, the input is
    read as it is: loops over the kernel and a tile's columns are unrolled, so that LLVM loads each vector
    once for all its products, and knows at most columns that they are inside.
    """
    output, convolution = output_and_sum(schedule)
    n, block, row, column, lane = schedule.get_loops(output)
    blocks, block, lane = split_blocks(schedule, block, lane, decisions)
    rows, row = schedule.split(row, [None, int(decisions["rows"])])
    columns, column = schedule.split(column, [None, int(decisions["columns"])])
    schedule.reorder(n, blocks, rows, row, columns, block, column, lane)
    schedule.compute_at(convolution, columns, preserve_unit_loops=True)
    schedule.set_scope(convolution, 0, "local")
    if by is None:
        inline(schedule, "pad")
    else:
        pad_at(schedule, conv, rows)
    fuse_tasks(schedule, [n, blocks, rows], columns, conv, decisions)
    unroll_vectors(schedule, [column, lane])
    for term in sum_in_registers(schedule, convolution, 3, by=by):
        schedule.unroll(term)
