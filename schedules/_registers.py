"""Register tiles: sums of neighbouring outputs kept in vector registers until they are finished.

The decisions are few: how many blocks of filters and how many columns a tile
has, and whether threads walk over rows or over filters first.  What fits comes
from the target's vectors, so one source serves AVX2, AVX-512 and Neon.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import tvm
from tvm.target import codegen

from dlas.convolution import Conv, channel_block
from dlas.schedules._loops import output_block, parallelise, stage
from dlas.stack import Decisions, Target

NARROW, WIDE = 7, 28
"""Columns of a tile that are worth having, at least and at most."""


@dataclass(frozen=True)
class VectorUnit:
    """A processor's vector registers: how many, and the numbers of 32 bits that one holds."""

    lanes: int
    registers: int


def vector_unit(target: Target) -> VectorUnit:
    """Return the widest vector unit that a CPU target may use."""
    on = tvm.target.Target(dict(target.description))
    if codegen.target_has_features("avx512f", on):
        return VectorUnit(16, 32)
    if codegen.target_has_features("avx2", on):
        return VectorUnit(8, 16)
    if str(target.description.get("mtriple", "")).startswith(("aarch64", "arm64")):
        return VectorUnit(4, 32)
    return VectorUnit(4, 16)


def divisors(extent: int, most: int) -> list[int]:
    """Return the divisors of ``extent`` up to ``most``, in order."""
    return [d for d in range(1, min(extent, most) + 1) if extent % d == 0]


def pointwise(conv: Conv) -> bool:
    """Whether an output's place in its plane is its input's, so that rows and columns are one loop."""
    return (conv.r, conv.s, conv.strides) == (1, 1, (1, 1)) and not any(conv.padding)


def whole_tiles(conv: Conv) -> int:
    """Return ``conv.q``, or the columns to compute where it does not divide into tiles (a large prime)."""
    if conv.q <= WIDE or (pointwise(conv) and divisors(conv.p * conv.q, WIDE)[-1] >= NARROW):
        return conv.q
    return next(columns for columns in range(conv.q, 2 * conv.q) if divisors(columns, WIDE)[-1] >= NARROW)


def register_tiles(conv: Conv, t: int, target: Target) -> Sequence[Decisions]:
    """Return the tiles of a convolution in blocks of ``t`` filters, the best guess first.

    A tile's sums, one vector of weights for each of its filters and one of input
    have to fit in the registers.
    """
    unit = vector_unit(target)
    vectors = -(-t // unit.lanes)
    columns = conv.p * conv.q if pointwise(conv) else whole_tiles(conv)
    tiles = [
        (filters, width)
        for filters in divisors(conv.k // t, 8)
        for width in divisors(columns, WIDE)
        if vectors * filters * (width + 1) + 1 <= unit.registers
    ]
    aim = unit.registers // 2 - 1
    tiles.sort(key=lambda tile: (abs(vectors * tile[0] * tile[1] - aim), tile[0]))
    orders = ("filters", "rows") if conv.p > 1 and conv.k > t else ("filters",)
    return [{"filters": f, "columns": w, "order": order} for f, w in tiles for order in orders]


def compute_in_registers(schedule: Any, conv: Conv, t: int, decisions: Decisions) -> None:
    """Compute a tile of the output in registers and finish it from there.

    The sum is stage ``conv`` [n, k / t, p, q, t] with any reductions, outermost first
    in the order that they are to run.  ``decisions`` are a point of :func:`register_tiles`.
    """
    output = output_block(schedule)
    if schedule.get(output).name_hint == "conv":
        output = schedule.cache_write(output, 0, "local")
    convolution = stage(schedule, "conv")
    outer, inner = _tile_output(schedule, output, conv, t, decisions)
    schedule.compute_at(convolution, outer[-1], preserve_unit_loops=True)
    schedule.set_scope(convolution, 0, "local")
    schedule.parallel(schedule.fuse(*outer))
    points, terms = schedule.get_loops(convolution)[1:6], schedule.get_loops(convolution)[6:]
    schedule.reorder(*terms, *points)
    _unroll_vectors(schedule, points)
    start = schedule.decompose_reduction(convolution, terms[0])
    _unroll_vectors(schedule, schedule.get_loops(start)[1:])
    if channel_block(conv.output_layout):
        _unroll_vectors(schedule, inner)
    padding = stage(schedule, "pad")
    if padding is not None:
        parallelise(schedule, padding, 3)
        if channel_block(conv.input_layout):
            schedule.vectorize(schedule.get_loops(padding)[-1])


def _tile_output(
    schedule: Any, output: Any, conv: Conv, t: int, decisions: Decisions
) -> tuple[list[Any], list[Any]]:
    """Split the finished output into tiles; return the loops over tiles and those inside one."""
    n, block, row, column, *lane = schedule.get_loops(output)
    if not lane:
        block, filters = schedule.split(block, [None, t])
        lane = [filters]
    blocks, block = schedule.split(block, [None, int(decisions["filters"])])
    if pointwise(conv):
        column, row = schedule.fuse(row, column), None
    columns, column = schedule.split(column, [None, int(decisions["columns"])])
    rows = [] if row is None else [row]
    outer = [n, blocks, *rows, columns] if decisions["order"] == "filters" else [n, *rows, columns, blocks]
    inner = [block, column, *lane] if channel_block(conv.output_layout) else [block, *lane, column]
    schedule.reorder(*outer, *inner)
    return outer, inner


def _unroll_vectors(schedule: Any, loops: Sequence[Any]) -> None:
    """Make the last loop a vector and write the others out."""
    for loop in loops[:-1]:
        schedule.unroll(loop)
    schedule.vectorize(loops[-1])
