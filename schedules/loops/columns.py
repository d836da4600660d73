"""Register tiles whose vector lanes are columns: for few filters, and for outputs in NCHW."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

from tvm import tirx
from tvm.ir import Expr
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
from dlas.schedules.loops.words import row_of_words, schedule_words
from dlas.stack import Conv, Decisions, Target

WIDTHS = range(2, 9)
"""Vectors of a tile that, with some filters, keep the multipliers busy."""
UNTILED = 1.3
"""Time of columns that no such tile divides, relative to others."""
MOST_COLUMNS = 512
"""Most columns of rows that are summed as one, whose sums wait in the first-level cache for the tail."""
FEWER = 0.04
"""Share of the time that fewer columns are worth."""


def column_tiles(conv: Conv, target: Target) -> Sequence[Decisions]:
    """Return the register tiles whose vector lanes are columns, the best guess first.

    Each vector of input is multiplied by ``filters`` weights, so a tile has many filters and
    only as many rows as keep the multipliers busy.
    """
    unit = vector_unit(target)
    tiles = []
    for width in divisors(conv.q, 4 * unit.lanes):
        vectors = unit.vectors(width)
        for filters in divisors(conv.k // conv.groups, unit.registers):
            for rows in divisors(conv.p, 4):
                if vectors * rows * (filters + 1) + 1 <= unit.registers:
                    tiles.append((filters, rows, width))

    def guess(tile: tuple[int, int, int]) -> tuple[float, ...]:
        filters, rows, width = tile
        vectors = unit.vectors(width)
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


def joined_rows(conv: Conv, dots: DotProducts) -> tuple[int, int]:
    """Return the rows that are summed as one, and the columns of that, so that they fill vectors.

    Columns between two rows and beyond the last are summed too, and dropped: as few as a few rows allow.
    """
    row, choices = row_of_words(conv), []
    for rows, lanes in itertools.product(divisors(conv.p, conv.p), dots.instructions):
        vectors = -(-((rows - 1) * row + conv.q) // lanes)
        tiled = any(vectors % width == 0 for width in WIDTHS)
        price = conv.p // rows * vectors * (1 if tiled else UNTILED)
        if rows == 1 or vectors * lanes <= MOST_COLUMNS:
            choices.append((price, vectors * lanes, rows))
    least = min(choices)[0] * (1 + FEWER)
    _, columns, rows = min((choice for choice in choices if choice[0] <= least), key=lambda c: c[1:])
    return rows, columns


def dot_column_tiles(conv: Conv, target: Target, dots: DotProducts) -> Sequence[Decisions]:
    """Return register tiles of dot products whose sums are columns, the best guess first.

    They divide the columns that :func:`joined_rows` gives.
    """
    unit, (_, columns) = dots.unit(target), joined_rows(conv, dots)
    lanes = dots.lanes(columns, target)
    tiles = [
        (filters, vectors)
        for vectors in divisors(columns // lanes, unit.registers)
        for filters in divisors(conv.k // conv.groups, unit.registers)
        if unit.fits(vectors, filters)
    ]

    def guess(tile: tuple[int, int]) -> tuple[float, ...]:
        filters, vectors = tile
        return round(unit.price(filters, vectors, vectors), 2), abs(filters * vectors - unit.sums), vectors

    tiles.sort(key=guess)
    weights, inputs = conv.k * (conv.c // conv.groups) * conv.r * conv.s, conv.c * conv.h * conv.w
    orders = ("rows", "filters") if weights <= inputs else ("filters", "rows")  # the smaller is read again
    return [{"filters": f, "columns": v * lanes, "order": order} for f, v in tiles for order in orders]


def compute_columns_by_dot_products(
    schedule: Schedule, conv: Conv, decisions: Decisions, by: DotSums
) -> None:
    """Accumulate a tile of filters and columns by dot products, and apply the tail to whole rows.

    The sum is stage ``conv`` [n, k, p / rows, 1, columns] of rows that :func:`joined_rows` gives.
    ``decisions`` are a point of :func:`dot_column_tiles`.
    """
    output, convolution = output_block(schedule), stage(schedule, "conv")
    groups, _, summed = (int(schedule.get(loop).extent) for loop in schedule.get_loops(convolution)[2:5])
    together = conv.p // groups

    def apart(n: Expr, k: Expr, p: Expr, q: Expr) -> list[Expr]:
        return [n, k, p // together, p % together, q]

    def all_columns(n: Expr, k: Expr, rows: Expr, row: Expr, q: Expr) -> list[tuple[Expr, Expr]]:
        return [(n, n + 1), (k, k + 1), (rows, rows + 1), (0, 1), (0, summed)]

    schedule.transform_block_layout(output, tirx.IndexMap.from_func(apart, 4, index_dtype="int32"))
    stored = schedule.cache_write(convolution, 0, "local")
    # What vectors sum beyond a row's end nobody reads; tiles without it would not be vectors.
    names = [region.source.name for region in schedule.get(output).reads]
    schedule.annotate_buffer_access(output, names.index("conv"), "read", all_columns)
    n, filters, rows, row, q = schedule.get_loops(output)
    filters, k = schedule.split(filters, [None, int(decisions["filters"])])
    tasks = [n, filters, rows] if decisions["order"] == "filters" else [n, rows, filters]
    schedule.reorder(*tasks, k, row, q)
    schedule.compute_at(stored, tasks[-1], preserve_unit_loops=True)
    schedule.set_scope(stored, 0, "local")
    *copied, column = schedule.get_loops(stored)[len(tasks) :]
    columns, column = schedule.split(column, [None, int(decisions["columns"])])
    schedule.reorder(columns, *copied, column)
    schedule.compute_at(convolution, columns, preserve_unit_loops=True)
    schedule.parallel(schedule.fuse(*tasks))
    sum_in_registers(schedule, convolution, 2, by=by)
    lanes = by.dots.lanes(int(decisions["columns"]), by.target)
    unroll_vectors(schedule, [*copied, *schedule.split(column, [None, lanes])])
    if conv.q % lanes == 0:
        _, q = schedule.split(q, [None, lanes])
    schedule.vectorize(q)
    pad_by_all_threads(schedule, conv)
    schedule_words(schedule, conv)


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
