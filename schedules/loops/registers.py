"""Register tiling: sums of neighbouring outputs stay in vector registers until they are finished."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from tvm import tirx
from tvm.ir import Expr
from tvm.s_tir import Schedule
from tvm.s_tir.schedule import LoopRV, SBlockRV

from dlas.schedules.loops.dot_intrinsics import sum_dot_products
from dlas.schedules.loops.dot_products import DotProducts
from dlas.schedules.loops.filter_tiles import filters_a_block
from dlas.schedules.loops.halves import CHAIN
from dlas.schedules.loops.remainders import mark_remainder
from dlas.schedules.loops.transformations import output_block, parallelise, stage
from dlas.schedules.loops.vectors import ONLY_BLOCK
from dlas.stack import Conv, Decisions, Target, channel_block


@dataclass(frozen=True)
class DotSums:
    """Sums by dot products."""

    dots: DotProducts
    target: Target


def compute_filters_in_registers(
    schedule: Schedule, conv: Conv, decisions: Decisions, by: DotSums | None = None
) -> None:
    """Accumulate a tile of blocks of filters and columns in registers, and apply the tail there.

    The sum is stage ``conv`` [n, k / t, p, q, t] with any reduction axes, which keep their order.
    Each task pads the input that it reads, which stays in its core's cache.
    ``decisions`` are a point of :func:`shared_filter_tiles`.
    With ``by`` products are added by dot products: the last reduction axis runs over their terms.
    """
    output, convolution = output_and_sum(schedule)
    if "joined" in decisions:
        join_rows(schedule, output, convolution, conv, int(decisions["joined"]))
    tasks, around, columns, inner = _tile_blocks(schedule, output, conv, decisions)
    schedule.compute_at(convolution, [*tasks, *around][-1], preserve_unit_loops=True)
    schedule.set_scope(convolution, 0, "local")
    if stage(schedule, CHAIN) is not None:  # before what it reads, which is padded here
        add_chains_at(schedule, [*tasks, *around][-1])
    if "parts" in decisions:
        pad_at(schedule, conv, tasks[-1])
    else:
        pad_by_all_threads(schedule, conv)
    fuse_tasks(schedule, tasks, columns, conv, decisions)
    if channel_block(conv.output_layout):
        unroll_vectors(schedule, inner)
    sum_in_registers(schedule, convolution, 1 + len(around), by=by)


def _tile_blocks(
    schedule: Schedule, output: SBlockRV, conv: Conv, decisions: Decisions
) -> tuple[list[LoopRV], list[LoopRV], LoopRV, list[LoopRV]]:
    """Split the output into tasks of tiles.

    Returns
    -------
    tuple
        The loops over tasks, the loops over a task's tiles, which of them all runs over the
        tiles of a row, and the loops inside a tile.
    """
    n, block, *pixel = schedule.get_loops(output)
    *pixel, lane = pixel if channel_block(conv.output_layout) else (*pixel, None)
    if lane is None:
        block, lane = schedule.split(block, [None, filters_a_block(conv)])
    blocks, block, lane = split_blocks(schedule, block, lane, decisions)
    row, column = pixel if len(pixel) == 2 else schedule.split(*pixel, [None, a_row(conv, decisions)])
    columns, column = schedule.split(column, [None, int(decisions["columns"])])
    inner = [block, column, lane] if channel_block(conv.output_layout) else [block, lane, column]
    if "parts" not in decisions:  # nothing is padded: each tile is a task
        tasks, around = [n, *_ordered(decisions, blocks, row, columns)], []
    else:
        rows, row = schedule.split(row, [None, int(decisions["rows"])])
        parts, blocks = schedule.split(blocks, [int(decisions["parts"]), None])
        tasks, around = [n, rows, parts], _ordered(decisions, blocks, row, columns)
    schedule.reorder(*tasks, *around, *inner)
    return tasks, around, columns, inner


def join_rows(schedule: Schedule, output: SBlockRV, convolution: SBlockRV, conv: Conv, rows: int) -> None:
    """Make one row of so many, of the output and of its sum, for tiles to cross from one into the next.

    The sum has all pixels in one row.  TVM has to see the same rows in both to know how many sums a tile
    has, of which the last one of a row has fewer.  A sum of one term stays as it is, since TVM would take
    none of its axes for that of a sum; the output has one row then.
    """
    axes = schedule.get(convolution).iter_vars
    terms = [place for place in range(5, len(axes)) if int(axes[place].dom.extent) > 1]
    columns = rows * conv.q

    def joined(n: Expr, k: Expr, p: Expr, q: Expr, *lane: Expr) -> list[Expr]:
        pixel = [p // rows, p % rows * conv.q + q] if terms else [p * conv.q + q]
        return [n, k, *pixel, *lane]

    def parted(n: Expr, k: Expr, p: Expr, q: Expr, lane: Expr) -> list[Expr]:
        return [n, k, q // columns, q % columns, lane]

    def of_sum(*axes: Expr) -> list[Expr]:
        return [*parted(*axes[:5]), *(axes[place] for place in terms)]

    def mapped(by: Callable[..., list[Expr]], axes: int) -> tirx.IndexMap:
        return tirx.IndexMap.from_func(by, axes, index_dtype="int32")

    schedule.transform_block_layout(output, mapped(joined, len(schedule.get(output).iter_vars)))
    if terms:
        schedule.transform_block_layout(convolution, mapped(of_sum, len(axes)))
        schedule.transform_layout(convolution, ("write", 0), mapped(parted, 5))


def a_row(conv: Conv, decisions: Decisions) -> int:
    """Return the columns that tiles are laid over, of one row or of several that are joined."""
    return int(decisions.get("joined", 1)) * conv.q


def fuse_tasks(
    schedule: Schedule, tasks: Sequence[LoopRV], columns: LoopRV, conv: Conv, decisions: Decisions
) -> None:
    """Share tasks among threads, and mark the loop over a row's tiles where the last one is narrower.

    Parameters
    ----------
    columns : LoopRV
        Over the tiles of a row: one of the tasks or a loop further inside.
    """
    at = next((i for i, task in enumerate(tasks) if task is columns), None)
    inside = [int(schedule.get(task).extent) for task in tasks[at + 1 :]] if at is not None else []
    tiles = int(schedule.get(columns).extent)
    fused = schedule.fuse(*tasks)
    schedule.parallel(fused)
    if a_row(conv, decisions) % int(decisions["columns"]):
        mark_remainder(schedule, columns if at is None else fused, math.prod(inside), tiles)


def compute_panel_in_registers(
    schedule: Schedule, conv: Conv, decisions: Decisions, by: DotSums | None = None
) -> None:
    """Apply im2col to a few rows of the output, then compute those rows tile by tile in registers.

    The sum is stage ``conv`` [n, k / t, p, q, t] over stage ``im2col`` [n, groups, p, at, q], whose elements
    are words of d terms where it is added ``by`` dot products.
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
    if by is None and conv.r * conv.s == 1 and conv.strides == (1, 1):
        schedule.compute_inline(patches)
    else:
        schedule.compute_at(patches, rows, preserve_unit_loops=True)
        schedule.vectorize(schedule.get_loops(patches)[-1])
    fuse_tasks(schedule, [n, rows], columns, conv, decisions)
    sum_in_registers(schedule, convolution, 4, by=by)
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
    schedule: Schedule, convolution: SBlockRV, outside: int, vector: int = -1, by: DotSums | None = None
) -> list[LoopRV]:
    """Move the reduction loops outside a tile, whose accumulators stay in registers; return those loops.

    Parameters
    ----------
    outside : int
        Loops around the tile.
    vector : int
        Which of the spatial loops is vectorised; by default the last.
    by : DotSums, optional
        How products are added; by default one by one.
    """
    if by is not None:
        return sum_dot_products(schedule, convolution, outside, by.dots, by.target)
    points = sum(axis.iter_type != tirx.IterVar.CommReduce for axis in schedule.get(convolution).iter_vars)
    loops = schedule.get_loops(convolution)[outside:]
    tile, terms = _last(loops[:points], vector), loops[points:]
    schedule.reorder(*terms, *tile)
    chained = stage(schedule, CHAIN) is not None
    start_chains = _chains_in_registers(schedule, terms[-1]) if chained else None
    unroll_vectors(schedule, tile)
    start = schedule.decompose_reduction(convolution, terms[0])
    unroll_vectors(schedule, schedule.get_loops(start)[outside:])
    if start_chains is not None:
        start_chains()
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


def add_chains_at(schedule: Schedule, loop: LoopRV) -> list[LoopRV]:
    """Compute sums of a few products inside a loop over these; return the loops of stage ``chain`` there."""
    chain = stage(schedule, CHAIN)
    schedule.compute_at(chain, loop, preserve_unit_loops=True)
    return list(schedule.get_loops(chain)[-len(schedule.get(chain).iter_vars) :])


def _chains_in_registers(schedule: Schedule, loop: LoopRV) -> Callable[[], None]:
    """Add the products of chains for all of a tile; return what is to be done once its sums have started."""
    *tile, product = add_chains_at(schedule, loop)
    chain = stage(schedule, CHAIN)
    schedule.set_scope(chain, 0, "local")
    schedule.reorder(product, *tile)
    unroll_vectors(schedule, tile)

    def start() -> None:
        started = schedule.decompose_reduction(chain, product)
        unroll_vectors(schedule, schedule.get_loops(started)[-len(tile) :])

    return start


def unroll_vectors(schedule: Schedule, loops: Sequence[LoopRV]) -> None:
    """Vectorise the last loop and unroll the others; one of 24 iterations is three vectors of eight.

    LLVM keeps vectors in registers whose lengths are powers of two.
    """
    *others, vector = loops
    if schedule.get(vector).extent == ONLY_BLOCK:
        third, vector = schedule.split(vector, [3, None])
        others.append(third)
    for loop in others:
        schedule.unroll(loop)
    schedule.vectorize(vector)
