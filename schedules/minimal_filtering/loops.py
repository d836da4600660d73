"""Loops of a minimal filtering algorithm: by panels with products in registers, or tile by tile."""

from __future__ import annotations

import math

from tvm.s_tir import Schedule
from tvm.s_tir.schedule import LoopRV, SBlockRV

from dlas.schedules.loops.registers import unroll_vectors
from dlas.schedules.loops.transformations import (
    inline,
    output_block,
    parallelise,
    schedule_padding,
    spread,
    stage,
    start_once,
)
from dlas.schedules.loops.vectors import vector_unit
from dlas.schedules.minimal_filtering.stages import TileGrid
from dlas.stack import Conv, Decisions, Target, channel_block


def compute_panels(schedule: Schedule, conv: Conv, size: int, target: Target, decisions: Decisions) -> None:
    """Transform a panel of tiles, multiply it by one group of filters after the other, and transform back.

    A panel stays in the cache of the core that transforms it, and so do the products of a
    group.  ``decisions`` are a point of :func:`dlas.schedules.minimal_filtering.space.panel_points`.
    """
    inline(schedule, "untile")
    grid, lanes = TileGrid.of(conv, size), vector_unit(target).lanes
    tasks, group, outputs = _split_output(schedule, conv, grid, lanes, decisions)
    for name in ("from_tiles", "from_tiles_rows"):
        _keep_at(schedule, stage(schedule, name), outputs[0])
    schedule.compute_at(stage(schedule, "conv"), group, preserve_unit_loops=True)
    schedule.compute_at(stage(schedule, "to_tiles"), tasks[-1], preserve_unit_loops=True)
    _transform_input(schedule, conv, lanes)
    schedule.parallel(schedule.fuse(*tasks))
    _, y, z, lane = outputs
    unroll_vectors(schedule, [y, z, lane] if channel_block(conv.output_layout) else [y, lane, z])
    for name in ("from_tiles", "from_tiles_rows"):
        unroll_vectors(schedule, schedule.get_loops(stage(schedule, name))[-3:])
    _multiply_in_registers(schedule, grid, int(decisions["tiles"]))


def _split_output(
    schedule: Schedule, conv: Conv, grid: TileGrid, lanes: int, decisions: Decisions
) -> tuple[list[LoopRV], LoopRV, list[LoopRV]]:
    """Split the output; return the loops over tasks, over groups of filters, and over a tile's vectors.

    The latter are the loop over the vectors of a block, and those over rows, columns and lanes.
    """
    n, block, p, q, *lane = schedule.get_loops(output_block(schedule))
    if not lane:
        block, *lane = schedule.split(block, [None, grid.filters])
    vectors, lane = schedule.split(lane[0], [None, math.gcd(grid.filters, lanes)])
    rows, y = schedule.split(p, [None, grid.size])
    columns, z = schedule.split(q, [None, grid.size])
    parts, group, block = schedule.split(block, [int(decisions["parts"]), None, int(decisions["filters"])])
    schedule.reorder(n, rows, columns, parts, group, block, vectors, y, z, lane)
    panel, tile = schedule.split(schedule.fuse(rows, columns), [None, int(decisions["panel"])])
    schedule.reorder(n, panel, parts, group, tile, block, vectors, y, z, lane)
    return [n, panel, parts], group, [vectors, y, z, lane]


def _transform_input(schedule: Schedule, conv: Conv, lanes: int) -> None:
    """Transform a panel tile by tile, a vector of channels at a time, from registers."""
    tiles, padding = stage(schedule, "to_tiles"), stage(schedule, "pad")
    *_, i, j, block, tile, lane = schedule.get_loops(tiles)
    vectors, lane = schedule.split(lane, [None, math.gcd(int(schedule.get(lane).extent), lanes)])
    schedule.reorder(block, tile, vectors, i, j, lane)
    rows = stage(schedule, "to_tiles_rows")
    _keep_at(schedule, rows, vectors)
    if channel_block(conv.input_layout):
        _keep_at(schedule, padding, vectors)
        unroll_vectors(schedule, schedule.get_loops(padding)[-3:])
    else:
        parallelise(schedule, padding, 3)
    for computed in (tiles, rows):
        unroll_vectors(schedule, schedule.get_loops(computed)[-3:])


def _keep_at(schedule: Schedule, block: SBlockRV, loop: LoopRV) -> None:
    """Compute a stage in each iteration of a loop, in registers as far as they go."""
    schedule.compute_at(block, loop, preserve_unit_loops=True)
    schedule.set_scope(block, 0, "local")


def _multiply_in_registers(schedule: Schedule, grid: TileGrid, width: int) -> None:
    """Sum the products of ``width`` tiles and a group of filters in registers."""
    products = stage(schedule, "conv")
    *_, block, i, j, tile, lane, c = schedule.get_loops(products)
    tile, column = schedule.split(tile, [None, width])
    outer, c = schedule.split(c, [None, math.gcd(int(schedule.get(c).extent), grid.channels)])
    schedule.reorder(i, j, tile, outer, c, column, block, lane)
    written = schedule.cache_write(products, 0, "local")
    schedule.reverse_compute_at(written, tile, preserve_unit_loops=True)
    unroll_vectors(schedule, schedule.get_loops(written)[-3:])
    unroll_vectors(schedule, [column, block, lane])
    start = schedule.decompose_reduction(products, outer)
    unroll_vectors(schedule, schedule.get_loops(start)[-3:])


def tile_by_tile(schedule: Schedule, conv: Conv, target: Target) -> None:
    """Share among threads the transforms of tiles, the sums of products, and the tail."""
    gpu = target.on_gpu
    inline(schedule, "untile")
    spread(schedule, output_block(schedule), len(conv.output_shape), gpu)
    after = _transform_tiles(schedule, "from_tiles", gpu)
    products = stage(schedule, "conv")
    schedule.compute_at(products, schedule.get_loops(after)[3], preserve_unit_loops=True)
    schedule.set_scope(products, 0, "local" if gpu else "global")
    spread(schedule, after, 4, gpu)
    start_once(schedule)
    before = _transform_tiles(schedule, "to_tiles", gpu)
    if gpu:
        padding = stage(schedule, "pad")
        schedule.compute_at(padding, schedule.get_loops(before)[3], preserve_unit_loops=True)
        schedule.set_scope(padding, 0, "local")
    else:
        schedule_padding(schedule, gpu)
    spread(schedule, before, 4, gpu)


def _transform_tiles(schedule: Schedule, name: str, gpu: bool) -> SBlockRV:
    """Compute a transform tile by tile; return the block that writes its result.

    Its loops are over images, blocks, tiles and lanes, then over a tile's elements.
    """
    whole, rows = stage(schedule, name), stage(schedule, f"{name}_rows")
    written = schedule.cache_write(whole, 0, "local") if gpu else whole
    n, *middle, lane = schedule.get_loops(written)
    (block, tile), square = (middle[2:], middle[:2]) if name == "to_tiles" else (middle[:2], middle[2:])
    schedule.reorder(n, block, tile, lane, *square)
    if gpu:
        schedule.compute_at(whole, lane, preserve_unit_loops=True)
    schedule.compute_at(rows, lane, preserve_unit_loops=True)
    schedule.set_scope(rows, 0, "local" if gpu else "global")
    for computed in (whole, rows):  # which row of a matrix it is has to be known at compile time
        for loop in schedule.get_loops(computed)[4:]:
            schedule.unroll(loop)
    return written
