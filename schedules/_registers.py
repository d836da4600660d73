"""Register tiles: sums of neighbouring outputs kept in vector registers until they are finished.

The decisions are few: how many filters, rows and columns a tile has, and in
which order threads walk over tiles.  What fits comes from the target's vectors,
so one source serves AVX2, AVX-512 and Neon.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import tvm
from tvm.target import codegen

from dlas.convolution import Conv, channel_block
from dlas.schedules._loops import output_block, padded_size, parallelise, stage
from dlas.stack import Decisions, Target

WIDEST_BLOCK = 16
"""Filters of a block, at most: one vector of AVX-512, two of AVX2, four of Neon."""
NARROW, WIDE = 7, 28
"""Columns of a tile that are worth having, at least and at most."""
REDUCTION = 2
"""TVM's number for a reduction axis."""
SLAB_BYTES = 40_000
"""What padded rows of a block of channels may take, so that they stay in or next to a first-level cache."""
PANEL_BYTES = 2**18
"""What patches written out together may take, so that they stay in a second-level cache."""
SHARE_BYTES = 2**19
"""What the padded input of a thread's share may take, so that it stays in a second-level cache."""
COPIED, READ = 17.0, 1.7
"""Multiply-adds that take as long as copying a number of the input, and as reading a weight once more."""
SHARES = 4
"""Ways to share the work that are worth trying."""


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


# ---------------------------------------------------------------- what tiles are made of


def divisors(extent: int, most: int) -> list[int]:
    """Return the divisors of ``extent`` up to ``most``, in order."""
    return [d for d in range(1, min(extent, most) + 1) if extent % d == 0]


def filters_a_block(conv: Conv) -> int:
    """Return the filters of a block: as in the output's layout, or what divides a group's filters."""
    return channel_block(conv.output_layout) or divisors(conv.k // conv.groups, WIDEST_BLOCK)[-1]


def whole_tiles(conv: Conv) -> int:
    """Return ``conv.q``, or the columns to compute where it does not divide into tiles (a large prime)."""
    if conv.q <= WIDE:
        return conv.q
    return next(columns for columns in range(conv.q, 2 * conv.q) if divisors(columns, WIDE)[-1] >= NARROW)


def pointwise(conv: Conv) -> bool:
    """Whether an output's place in its plane is its input's, so that rows and columns are one loop."""
    plain = (conv.r, conv.s, conv.strides) == (1, 1, (1, 1)) and not any(conv.padding)
    return plain and whole_tiles(conv) == conv.q


# ---------------------------------------------------------------- lanes are filters


def filter_tiles(conv: Conv, target: Target) -> Sequence[Decisions]:
    """Return the tiles of a convolution whose vectors run over filters, the best guess first.

    A tile's sums, one vector of weights for each of its blocks and one of input
    have to fit in the registers.
    """
    unit, t = vector_unit(target), filters_a_block(conv)
    vectors = -(-t // unit.lanes)
    widths = divisors(whole_tiles(conv), WIDE)
    if pointwise(conv):
        widths += [rows * conv.q for rows in divisors(conv.p, WIDE // conv.q)[1:]]
    tiles = [
        (filters, width)
        for filters in divisors(conv.k // t, 8)
        for width in widths
        if vectors * filters * (width + 1) + 1 <= unit.registers
    ]
    aim = unit.registers // 2 - 1
    tiles.sort(key=lambda tile: (abs(vectors * tile[0] * tile[1] - aim), tile[0]))
    orders = ("filters", "rows", "columns") if conv.p * conv.q > 1 and conv.k > t else ("filters",)
    return [{"filters": f, "columns": w, "order": order} for f, w in tiles for order in orders]


def shared_filter_tiles(conv: Conv, target: Target) -> Sequence[Decisions]:
    """Return the tiles of :func:`filter_tiles`, with shares of the work for which threads pad by themselves.

    A share is some rows of the output, and one of some parts of the filters.
    """
    tiles, (height, width) = filter_tiles(conv, target), padded_size(conv, whole_tiles(conv))
    if (height, width) == (conv.h, conv.w):
        return tiles
    shares = _shares(conv, target, width)
    return [{**tile, **share} for share in shares for tile in tiles if _splits(conv, tile, share)]


def _shares(conv: Conv, target: Target, width: int) -> list[Decisions]:
    """Return the shares that cost least, of an input padded to ``width``, the best guess first.

    Threads are idle while the last share is computed, rows are copied for every part of
    the filters and for both shares that meet there, and each share reads its weights.
    """

    def read(rows: int) -> int:
        return (rows - 1) * conv.strides[0] + (conv.r - 1) * conv.dilation[0] + 1

    def cost(share: tuple[int, int]) -> float:
        rows, parts = share
        tasks = conv.n * conv.p // rows * parts
        idle = -(-tasks // target.threads) * target.threads / tasks
        outputs = rows * conv.q
        copied = parts * read(rows) * width * conv.groups / (outputs * conv.k * conv.r * conv.s)
        return idle * (1 + COPIED * copied + READ / outputs)

    def fits(rows: int) -> bool:
        return rows == 1 or 4 * conv.c * width * read(rows) <= SHARE_BYTES

    parts = divisors(conv.k // filters_a_block(conv), 2 * target.threads)
    shares = [(rows, part) for rows in divisors(conv.p, conv.p) if fits(rows) for part in parts]
    return [{"rows": rows, "parts": part} for rows, part in sorted(shares, key=cost)[:SHARES]]


def _splits(conv: Conv, tile: Decisions, share: Decisions) -> bool:
    """Whether blocks of filters divide into the share's parts, and those into the tile's filters."""
    return conv.k // filters_a_block(conv) % (int(tile["filters"]) * int(share["parts"])) == 0


def compute_filters_in_registers(schedule: Any, conv: Conv, decisions: Decisions) -> None:
    """Compute a tile of blocks of filters and columns in registers, and finish it from there.

    The sum is stage ``conv`` [n, k / t, p, q, t] with any reductions, in the order in
    which they are to run.  Each thread pads what its share reads, which stays in its
    cache.  ``decisions`` are a point of :func:`shared_filter_tiles`.
    """
    output, convolution = _output_and_sum(schedule)
    share, around, inner = _tile_blocks(schedule, output, conv, decisions)
    schedule.compute_at(convolution, [*share, *around][-1], preserve_unit_loops=True)
    schedule.set_scope(convolution, 0, "local")
    pad_at(schedule, conv, share[-1])
    schedule.parallel(schedule.fuse(*share))
    _sum_in_registers(schedule, convolution, 1 + len(around))
    if channel_block(conv.output_layout):
        _unroll_vectors(schedule, inner)


def _tile_blocks(schedule: Any, output: Any, conv: Conv, decisions: Decisions) -> tuple[list[Any], ...]:
    """Split the output into shares of tiles; return the loops over shares, tiles, and points of a tile."""
    n, block, row, column, *lane = schedule.get_loops(output)
    if not lane:
        block, filters = schedule.split(block, [None, filters_a_block(conv)])
        lane = [filters]
    blocks, block = schedule.split(block, [None, int(decisions["filters"])])
    if int(decisions["columns"]) > conv.q:
        column, row = schedule.fuse(row, column), schedule.add_unit_loop(n)
    columns, column = schedule.split(column, [None, int(decisions["columns"])])
    inner = [block, column, *lane] if channel_block(conv.output_layout) else [block, *lane, column]
    if "parts" not in decisions:  # nothing is padded: each tile is a share
        share, around = [n, *_ordered(decisions, blocks, row, columns)], []
    else:
        rows, row = schedule.split(row, [None, int(decisions["rows"])])
        parts, blocks = schedule.split(blocks, [int(decisions["parts"]), None])
        share, around = [n, rows, parts], _ordered(decisions, blocks, row, columns)
    schedule.reorder(*share, *around, *inner)
    return share, around, inner


def panel_tiles(conv: Conv, target: Target) -> Sequence[Decisions]:
    """Return register tiles of a matrix product, each with the rows whose patches are kept together."""
    tiles = [tile for tile in filter_tiles(conv, target) if conv.q % int(tile["columns"]) == 0]
    a_row = 4 * conv.c * conv.r * conv.s * conv.q
    rows = [rows for rows in divisors(conv.p, 8) if rows == 1 or rows * a_row <= PANEL_BYTES]
    return [{**tile, "rows": number} for tile in tiles for number in rows]


def compute_panel_in_registers(schedule: Any, conv: Conv, decisions: Decisions) -> None:
    """Write out the patches of a few rows of the output, then compute those rows tile by tile in registers.

    The sum is stage ``conv`` [n, k / t, p, q, t] over stage ``im2col`` [n, groups, p, at, q].
    Each thread has its own rows.  ``decisions`` are a point of :func:`panel_tiles`.
    """
    output, convolution = _output_and_sum(schedule)
    n, block, row, column, *lane = schedule.get_loops(output)
    if not lane:
        block, filters = schedule.split(block, [None, filters_a_block(conv)])
        lane = [filters]
    rows, row = schedule.split(row, [None, int(decisions["rows"])])
    blocks, block = schedule.split(block, [None, int(decisions["filters"])])
    columns, column = schedule.split(column, [None, int(decisions["columns"])])
    tiles = _ordered(decisions, blocks, row, columns)
    schedule.reorder(n, rows, *tiles, block, *lane, column)
    schedule.compute_at(convolution, tiles[-1], preserve_unit_loops=True)
    schedule.set_scope(convolution, 0, "local")
    patches = stage(schedule, "im2col")
    if conv.r * conv.s == 1 and conv.strides == (1, 1):
        schedule.compute_inline(patches)
    else:
        schedule.compute_at(patches, rows, preserve_unit_loops=True)
        schedule.vectorize(schedule.get_loops(patches)[-1])
    schedule.parallel(schedule.fuse(n, rows))
    _sum_in_registers(schedule, convolution, 4)
    pad_by_all_threads(schedule, conv)


# ---------------------------------------------------------------- lanes are columns


def column_tiles(conv: Conv, target: Target) -> Sequence[Decisions]:
    """Return the tiles of a convolution whose vectors run over columns, the best guess first.

    Each vector of input meets ``filters`` weights, so a tile has many filters and
    as few rows as keep the arithmetic busy.
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


def compute_columns_in_registers(schedule: Any, conv: Conv, decisions: Decisions) -> None:
    """Compute a tile of filters, rows and columns in registers, and finish it from there.

    The sum is stage ``conv`` [n, k, p, q] with any reductions, in the order in which
    they are to run.  ``decisions`` are a point of :func:`column_tiles`.
    """
    output, convolution = _output_and_sum(schedule)
    n, filters, row, column = schedule.get_loops(output)
    filters, k = schedule.split(filters, [None, int(decisions["filters"])])
    rows, p = schedule.split(row, [None, int(decisions["rows"])])
    columns, q = schedule.split(column, [None, int(decisions["columns"])])
    outer = [n, filters, rows, columns] if decisions["order"] == "filters" else [n, rows, columns, filters]
    schedule.reorder(*outer, k, p, q)
    schedule.compute_at(convolution, outer[-1], preserve_unit_loops=True)
    schedule.set_scope(convolution, 0, "local")
    schedule.parallel(schedule.fuse(*outer))
    _sum_in_registers(schedule, convolution, 1, vector=3)
    _unroll_vectors(schedule, [k, p, q])
    pad_by_all_threads(schedule, conv)


# ---------------------------------------------------------------- channels by themselves


def depthwise_tiles(conv: Conv, target: Target) -> Sequence[Decisions]:
    """Return rows that share their padded input, and columns of a tile, the best guess first."""
    unit, t = vector_unit(target), filters_a_block(conv)
    vectors = -(-t // unit.lanes)
    widths = [w for w in divisors(whole_tiles(conv), WIDE) if vectors * (w + 1) + 1 <= unit.registers]
    widths.sort(key=lambda width: abs(vectors * width - unit.registers // 2 + 1))
    padded_row = 4 * t * (conv.w + conv.padding[1] + conv.padding[3])
    most = (SLAB_BYTES // padded_row - conv.r) // conv.strides[0] + 1
    rows = sorted(divisors(conv.p, conv.p), key=lambda rows: (rows > max(most, 1), abs(rows - most)))
    return [{"rows": r, "columns": w} for w in widths[:4] for r in rows[:4]]


def compute_channels_in_registers(schedule: Any, conv: Conv, decisions: Decisions) -> None:
    """Compute a row's tile of one block of channels in registers; the lanes are channels.

    The sum is stage ``conv`` [n, k / t, p, q, t].  A few rows share their padded
    input, which stays in the first-level cache.
    """
    output, convolution = _output_and_sum(schedule)
    n, block, row, column, lane = schedule.get_loops(output)
    rows, row = schedule.split(row, [None, int(decisions["rows"])])
    columns, column = schedule.split(column, [None, int(decisions["columns"])])
    schedule.reorder(n, block, rows, row, columns, column, lane)
    schedule.compute_at(convolution, columns, preserve_unit_loops=True)
    schedule.set_scope(convolution, 0, "local")
    pad_at(schedule, conv, rows)
    schedule.parallel(schedule.fuse(n, block, rows))
    terms = _sum_in_registers(schedule, convolution, 3)
    for term in terms:
        schedule.unroll(term)
    _unroll_vectors(schedule, [column, lane])


# ---------------------------------------------------------------- steps


def _ordered(decisions: Decisions, blocks: Any, row: Any, columns: Any) -> list[Any]:
    """Return the loops over tiles, outermost first.

    ``filters`` reads a block's weights once, ``rows`` an input row once, ``columns`` a tile's input once.
    """
    orders = {
        "filters": [blocks, row, columns],
        "rows": [row, blocks, columns],
        "columns": [row, columns, blocks],
    }
    return orders[str(decisions["order"])]


def _output_and_sum(schedule: Any) -> tuple[Any, Any]:
    """Return the block that writes the output, and the one of the sum, which becomes another block."""
    output = output_block(schedule)
    if schedule.get(output).name_hint == "conv":
        return schedule.cache_write(output, 0, "local"), output
    return output, stage(schedule, "conv")


def _sum_in_registers(schedule: Any, convolution: Any, outside: int, vector: int = -1) -> list[Any]:
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
    points = sum(axis.iter_type != REDUCTION for axis in schedule.get(convolution).iter_vars)
    loops = schedule.get_loops(convolution)[outside:]
    tile, terms = _last(loops[:points], vector), loops[points:]
    schedule.reorder(*terms, *tile)
    _unroll_vectors(schedule, tile)
    start = schedule.decompose_reduction(convolution, terms[0])
    _unroll_vectors(schedule, schedule.get_loops(start)[outside:])
    return list(terms)


def _last(loops: Sequence[Any], which: int) -> list[Any]:
    """Return ``loops`` with one of them moved to the end."""
    return [loop for loop in loops if loop is not loops[which]] + [loops[which]]


def pad_at(schedule: Any, conv: Conv, loop: Any) -> None:
    """Write what a turn of a loop reads of the padded input, in vectors where channels lie side by side."""
    padding = stage(schedule, "pad")
    if padding is not None:
        schedule.compute_at(padding, loop, preserve_unit_loops=True)
        if channel_block(conv.input_layout):
            schedule.vectorize(schedule.get_loops(padding)[-1])


def pad_by_all_threads(schedule: Any, conv: Conv) -> None:
    """Write the padded input by all threads, in vectors where channels lie next to each other."""
    padding = stage(schedule, "pad")
    if padding is not None:
        parallelise(schedule, padding, 3)
        if channel_block(conv.input_layout):
            schedule.vectorize(schedule.get_loops(padding)[-1])


def _unroll_vectors(schedule: Any, loops: Sequence[Any]) -> None:
    """Make the last loop a vector and write the others out."""
    for loop in loops[:-1]:
        schedule.unroll(loop)
    schedule.vectorize(loops[-1])
