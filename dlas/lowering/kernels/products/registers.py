"""Schedule a matrix product in register tiles, with the elementwise operators behind it."""

from __future__ import annotations

from tvm.s_tir import Schedule
from tvm.s_tir.schedule import LoopRV, SBlockRV

from dlas.lowering.kernels.products.tiles import copy_block
from dlas.schedules.loops.registers import sum_in_registers
from dlas.stack import Decisions

COPIED, LINEAR, ROWS = "copied", "linear", "rows"
"""Stages of a linear layer: the rows one below the other, the sums in panels, the output."""
FEWEST_LANES = 4
"""Fewest outputs that are worth a vector."""


def compute_linear_in_registers(schedule: Schedule, decisions: Decisions) -> None:
    """Accumulate a tile of rows and panels in registers, and apply what follows there.

    ``decisions`` are a point of :func:`dlas.lowering.kernels.products.tiles.row_tiles`.
    """
    copied, summed, output = inline_behind(schedule)
    panels, _, width = (int(axis.dom.extent) for axis in schedule.get(summed).iter_vars[:3])
    groups, tiles, inside, points = _split(schedule, output, decisions, panels, width)
    schedule.compute_at(summed, inside, preserve_unit_loops=True)
    schedule.set_scope(summed, 0, "local")
    whole = int(decisions["group"]) * int(decisions["panels"]) >= panels
    if decisions["copied"]:
        _copy(schedule, copied, tiles if whole else None)
    else:
        schedule.compute_inline(copied)
    share_tiles(schedule, groups, tiles)
    outside = len(schedule.get_loops(summed)) - len(schedule.get(summed).iter_vars)
    if decisions["copied"]:
        block = copy_block(int(schedule.get(summed).iter_vars[-1].dom.extent))
        schedule.split(schedule.get_loops(summed)[-1], [None, block])
    sum_in_registers(schedule, summed, outside)
    for loop in points[:-1]:
        schedule.unroll(loop)
    if int(schedule.get(points[-1]).extent) >= FEWEST_LANES:
        schedule.vectorize(points[-1])


def inline_behind(schedule: Schedule) -> tuple[SBlockRV, SBlockRV, SBlockRV]:
    """Inline all elementwise stages behind a linear layer into the last one; return its three stages."""
    blocks = schedule.get_child_blocks(schedule.get_sblock("root"))
    copied, summed, *behind, output = blocks
    for block in behind:
        schedule.compute_inline(block)
    return copied, summed, output


def _split(
    schedule: Schedule, output: SBlockRV, decisions: Decisions, panels: int, width: int
) -> tuple[LoopRV, LoopRV, LoopRV, list[LoopRV]]:
    """Split the output into tiles; return the loops over groups, tiles of rows and of panels, and points."""
    row, column = schedule.get_loops(output)
    tiles, row = schedule.split(row, [None, int(decisions["rows"])])
    # The last panel may be partly filled: its whole vectors are written under a condition.
    lanes = lanes_of(int(schedule.get(column).extent), width)
    vectors, lane = schedule.split(column, [None, lanes])
    together, group = int(decisions["panels"]), int(decisions["group"])
    groups, inside, vector = schedule.split(
        vectors, [-(-panels // (together * group)), group, together * width // lanes]
    )
    schedule.reorder(groups, tiles, inside, row, vector, lane)
    return groups, tiles, inside, [row, vector, lane]


def share_tiles(schedule: Schedule, groups: LoopRV, tiles: LoopRV) -> None:
    """Share tiles of rows of all groups among threads."""
    # TVM does not see through a loop that was fused with one of a single iteration.
    loops = [loop for loop in (groups, tiles) if int(schedule.get(loop).extent) > 1] or [tiles]
    schedule.parallel(schedule.fuse(*loops) if len(loops) > 1 else loops[0])


def lanes_of(outputs: int, width: int) -> int:
    """Return the outputs of a vector that fill rows of ``outputs`` and panels of ``width``."""
    return next(lanes for lanes in (width, 16, 8, 4, 2, 1) if width % lanes == 0 == outputs % lanes)


def _copy(schedule: Schedule, copied: SBlockRV, tile: LoopRV | None) -> None:
    """Copy rows so that a tile's are next to each other: all before the product, or a tile's before it."""
    if tile is None:
        schedule.parallel(schedule.get_loops(copied)[0])
    else:
        schedule.compute_at(copied, tile, preserve_unit_loops=True)
    schedule.vectorize(schedule.get_loops(copied)[-1])
