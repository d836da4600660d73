"""Vectorise the innermost spatial loop, with a reduction's accumulators in registers."""

from __future__ import annotations

from dataclasses import dataclass

from tvm.s_tir import SBlock, Schedule
from tvm.s_tir.schedule import LoopRV, SBlockRV

from dlas.lowering.operators.blocks import branches, extent, innermost, iterations, loops_of, strides
from dlas.lowering.operators.share import share

WIDEST = 64
"""Elements of a vectorised loop, at most: four vectors of AVX-512."""
WIDEST_STRIDED = 16
"""The same for strided reads, whose vectors are gathered element by element."""
ROWS = (4, 3, 2, 1)
"""Rows of a matrix product that a tile may have, the most first."""
ENOUGH_OUTER = 64
"""Iterations of outer loops that are enough to keep all threads busy."""
LONGEST_UNROLLED = 25
"""Terms of a reduction that are unrolled, at most: a window of 5 by 5."""


@dataclass(frozen=True)
class _Tile:
    """The loops of a block, split into those around a register tile and those of the tile."""

    outer: list[LoopRV]
    """Spatial loops around the tile, the last one over tiles of a row."""
    reduction: list[LoopRV]
    rows: list[LoopRV]
    """One loop where several rows of a matrix product are computed together, or none."""
    lanes: LoopRV
    """The loop to vectorise."""


def vectorise(schedule: Schedule, block: SBlockRV) -> bool:
    """Vectorise over neighbouring outputs and share the outer loops among threads."""
    spatial, reduction = loops_of(schedule, block)
    node = schedule.get(block)
    if not spatial or branches(node, innermost(node)) or (reduction and strides(node) <= {0}):
        return False
    work = iterations(schedule, spatial + reduction)
    single = [loop for loop in schedule.get_loops(block) if extent(schedule, loop) == 1]
    tile = _choose_tile(schedule, node, spatial, reduction)
    schedule.reorder(*single, *tile.outer, *reduction, *tile.rows, tile.lanes)
    if reduction and len(node.writes) == 1 and extent(schedule, tile.lanes) > 1:
        _accumulate_in_registers(schedule, block, tile)
    share(schedule, _parallel_loops(schedule, tile), work)
    _unroll_and_vectorise(schedule, block, tile)
    return True


def _choose_tile(schedule: Schedule, node: SBlock, spatial: list[LoopRV], reduction: list[LoopRV]) -> _Tile:
    """Split the innermost spatial loops into a register tile and the loops around it."""
    outer, rows = spatial[:-1], []
    # A matrix product: each load of a column's weights serves several rows.
    if len(reduction) == 1 and outer and len(node.reads) > 1:
        length = extent(schedule, outer[-1])
        together = next(count for count in ROWS if length % count == 0)
        outer[-1], row = schedule.split(outer[-1], [None, together])
        rows = [row]
    widest = WIDEST if strides(node) <= {0, 1} else WIDEST_STRIDED
    lanes = width(extent(schedule, spatial[-1]), widest)
    tiles, vector = schedule.split(spatial[-1], [None, lanes])
    return _Tile([*outer, tiles], reduction, rows, vector)


def width(length: int, widest: int = WIDEST) -> int:
    """Return the most elements to vectorise that divide a loop, whole vectors preferred."""
    divisors = [d for d in range(1, widest + 1) if length % d == 0]
    return max(divisors, key=lambda d: (d % 16 == 0, d % 8 == 0, d % 4 == 0, d))


def _accumulate_in_registers(schedule: Schedule, block: SBlockRV, tile: _Tile) -> None:
    """Sum in a local buffer of one tile, which LLVM keeps in registers, and copy it out at the end."""
    # TVM puts small buffers on the stack only if their scope is ``global``.
    written = schedule.cache_write(block, 0, "global")
    schedule.reverse_compute_at(written, tile.outer[-1])
    schedule.vectorize(schedule.get_loops(written)[-1])


def _parallel_loops(schedule: Schedule, tile: _Tile) -> list[LoopRV]:
    """Return the loops to share among threads: of a reduction, whole planes where these are enough."""
    planes = tile.outer[:-2]
    if tile.reduction and not tile.rows and iterations(schedule, planes) >= ENOUGH_OUTER:
        return planes
    return tile.outer


def _unroll_and_vectorise(schedule: Schedule, block: SBlockRV, tile: _Tile) -> None:
    """Unroll the tile's rows and short reductions, and vectorise both the sum and its initial value."""
    schedule.vectorize(tile.lanes)
    short = iterations(schedule, tile.reduction) <= LONGEST_UNROLLED
    for loop in tile.rows + (tile.reduction if short else []):
        schedule.unroll(loop)
    if tile.reduction:
        initial = schedule.decompose_reduction(block, tile.reduction[0])
        schedule.vectorize(schedule.get_loops(initial)[-1])
        if tile.rows:
            schedule.unroll(schedule.get_loops(initial)[-2])
