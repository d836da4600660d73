"""Register tiles whose vector lanes are columns: for few filters, and for outputs in NCHW."""

from __future__ import annotations

from collections.abc import Sequence

from tvm.s_tir import Schedule

from dlas.schedules.loops.registers import (
    output_and_sum,
    pad_by_all_threads,
    sum_in_registers,
    unroll_vectors,
)
from dlas.schedules.loops.vectors import divisors, vector_unit
from dlas.stack import Conv, Decisions, Target


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
    n, filters, row, column = schedule.get_loops(output)
    filters, k = schedule.split(filters, [None, int(decisions["filters"])])
    rows, p = schedule.split(row, [None, int(decisions["rows"])])
    columns, q = schedule.split(column, [None, int(decisions["columns"])])
    outer = [n, filters, rows, columns] if decisions["order"] == "filters" else [n, rows, columns, filters]
    schedule.reorder(*outer, k, p, q)
    schedule.compute_at(convolution, outer[-1], preserve_unit_loops=True)
    schedule.set_scope(convolution, 0, "local")
    schedule.parallel(schedule.fuse(*outer))
    sum_in_registers(schedule, convolution, 1, vector=3)
    unroll_vectors(schedule, [k, p, q])
    pad_by_all_threads(schedule, conv)
