"""Register tiles whose vector lanes are columns: for few filters, and for outputs in NCHW."""

from __future__ import annotations

from collections.abc import Sequence

from tvm import tirx
from tvm.s_tir import Schedule
from tvm.s_tir.schedule import LoopRV, SBlockRV

from dlas.schedules.loops.dot_products import DotProducts
from dlas.schedules.loops.registers import (
    DotSums,
    output_and_sum,
    pad_by_all_threads,
    sum_in_registers,
    unroll_vectors,
)
from dlas.schedules.loops.transformations import output_block, stage
from dlas.schedules.loops.vectors import divisors, vector_unit
from dlas.schedules.loops.words import schedule_words
from dlas.stack import Conv, Decisions, Target

NARROW = 8
"""Dot products with fewer sums take as long as those with so many."""
MOST_ROWS = 8
"""Most rows of a tile of dot products."""


def column_tiles(conv: Conv, target: Target) -> Sequence[Decisions]:
    """Return the register tiles whose vector lanes are columns, the best guess first.

    Each vector of input is multiplied by ``filters`` weights, so a tile has many filters and
    only as many rows as keep the multipliers busy.
    """
    unit = vector_unit(target)
    tiles = []
    for width in divisors(conv.q, 4 * unit.lanes):
        vectors = -(-width // unit.lanes)
        for filters in divisors(conv.k // conv.groups, unit.registers):
            for rows in divisors(conv.p, 4):
                if vectors * rows * (filters + 1) + 1 <= unit.registers:
                    tiles.append((filters, rows, width))

    def guess(tile: tuple[int, int, int]) -> tuple[float, ...]:
        filters, rows, width = tile
        vectors = -(-width // unit.lanes)
        idle = 1 - width / (vectors * unit.lanes)
        return round(idle, 1), abs(filters * rows * vectors - unit.registers // 2), rows

    orders = ("rows", "filters") if conv.k > conv.groups else ("filters",)
    tiles.sort(key=guess)
    return [{"filters": f, "rows": r, "columns": w, "order": order} for f, r, w in tiles for order in orders]


def compute_columns_in_registers(schedule: Schedule, conv: Conv, decisions: Decisions) -> None:
    """Accumulate a tile of filters, rows and columns in registers, and apply the tail there.

    The sum is stage ``conv`` [n, k, p, q] with any reduction axes, which keep their order.
    ``decisions`` are a point of :func:`column_tiles`.
    """
    output, convolution = output_and_sum(schedule)
    outer, inner = _split_columns(schedule, output, decisions)
    schedule.compute_at(convolution, outer[-1], preserve_unit_loops=True)
    schedule.set_scope(convolution, 0, "local")
    schedule.parallel(schedule.fuse(*outer))
    sum_in_registers(schedule, convolution, 1, vector=3)
    unroll_vectors(schedule, inner)
    pad_by_all_threads(schedule, conv)


def whole_vectors(columns: int, dots: DotProducts) -> int:
    """Return how many columns of a row to sum, some of them beyond its end, so that they fill vectors."""

    def time(lanes: int) -> tuple[int, int]:
        vectors = -(-columns // lanes)
        return vectors * max(lanes, NARROW), vectors * lanes

    return min(map(time, dots.instructions))[1]


def dot_column_tiles(conv: Conv, target: Target, dots: DotProducts) -> Sequence[Decisions]:
    """Return register tiles of dot products whose sums are columns, the best guess first.

    Tiles divide the columns that :func:`whole_vectors` gives, and are whole rows where those lie
    beyond a row's end, if they fit: no test for the end is left in the tail then.
    """
    unit, columns = dots.unit(target), whole_vectors(conv.q, dots)
    lanes = dots.lanes(columns, target)
    tiles = []
    for vectors in divisors(columns // lanes, unit.registers):
        for rows in divisors(conv.p, MOST_ROWS):
            for filters in divisors(conv.k // conv.groups, unit.registers):
                if unit.fits(vectors * rows, filters):
                    tiles.append((filters, rows, vectors * lanes))

    def guess(tile: tuple[int, int, int]) -> tuple[float, ...]:
        filters, rows, width = tile
        inputs = width // lanes * rows
        tested = columns != conv.q and width != columns
        return tested, round(unit.price(filters, inputs, inputs), 2), abs(filters * inputs - unit.sums), rows

    tiles.sort(key=guess)
    weights, inputs = conv.k * (conv.c // conv.groups) * conv.r * conv.s, conv.c * conv.h * conv.w
    orders = ("rows", "filters") if weights <= inputs else ("filters", "rows")  # the smaller is read again
    return [{"filters": f, "rows": r, "columns": w, "order": order} for f, r, w in tiles for order in orders]


def compute_columns_by_dot_products(
    schedule: Schedule, conv: Conv, decisions: Decisions, by: DotSums
) -> None:
    """Accumulate a tile of filters, rows and columns by dot products, and apply the tail there.

    The sum is stage ``conv`` [n, k, p, columns] with more columns than the output where those fill
    vectors.  It is stored once, before the tail, whose vectors end with the row.
    ``decisions`` are a point of :func:`dot_column_tiles`.
    """
    output, convolution = output_block(schedule), stage(schedule, "conv")
    stored = schedule.cache_write(convolution, 0, "local")
    outer, (k, p, q) = _split_columns(schedule, stored, decisions)
    schedule.compute_at(convolution, outer[-1], preserve_unit_loops=True)
    schedule.reverse_compute_at(output, outer[-1], preserve_unit_loops=True)
    schedule.set_scope(stored, 0, "local")
    schedule.parallel(schedule.fuse(*outer))
    sum_in_registers(schedule, convolution, 1, by=by)
    lanes = by.dots.lanes(int(decisions["columns"]), by.target)
    unroll_vectors(schedule, [k, p, *schedule.split(q, [None, lanes])])
    *inner, last = schedule.get_loops(output)[1:]
    extent = schedule.get(last).extent
    whole = isinstance(extent, tirx.IntImm) and int(extent) % lanes == 0
    unroll_vectors(schedule, [*inner, *(schedule.split(last, [None, lanes]) if whole else [last])])
    pad_by_all_threads(schedule, conv)
    schedule_words(schedule, by.target.threads)


def _split_columns(
    schedule: Schedule, block: SBlockRV, decisions: Decisions
) -> tuple[list[LoopRV], list[LoopRV]]:
    """Split the loops [n, k, p, q] of a block into tiles; return those over tiles and those inside one."""
    n, filters, row, column = schedule.get_loops(block)
    filters, k = schedule.split(filters, [None, int(decisions["filters"])])
    rows, p = schedule.split(row, [None, int(decisions["rows"])])
    columns, q = schedule.split(column, [None, int(decisions["columns"])])
    outer = [n, filters, rows, columns] if decisions["order"] == "filters" else [n, rows, columns, filters]
    schedule.reorder(*outer, k, p, q)
    return outer, [k, p, q]
