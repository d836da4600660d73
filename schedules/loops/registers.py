"""Register tiles: sums of neighbouring outputs kept in vector registers until they are finished.

The lanes of vectors are filters.  The decisions are few: how many filters, rows and
columns a tile has, and in which order threads walk over tiles.  What fits comes from
the target's vectors, so one source serves AVX2, AVX-512 and Neon.
"""

from __future__ import annotations

from collections.abc import Sequence

from tvm.s_tir import Schedule
from tvm.s_tir.schedule import LoopRV, SBlockRV

from dlas.schedules.loops.steps import output_block, padded_size, parallelise, stage
from dlas.schedules.loops.vectors import WIDEST_BLOCK, divisors, vector_unit
from dlas.stack import Conv, Decisions, Target, channel_block

NARROW, WIDE = 7, 28
"""Columns of a tile that are worth having, at least and at most."""


REDUCTION = 2
"""TVM's number for a reduction axis."""


PANEL_BYTES = 2**18
"""What patches written out together, or all weights, may take to stay in a second-level cache."""


WEIGHT_BYTES = 2**15
"""What the weights of a tile may take, so that they stay in a first-level cache."""


SHARE_BYTES = 2**19
"""What the padded input of a thread's share may take, so that it stays in a second-level cache."""


COPIED, READ = 17.0, 1.7
"""Multiply-adds that take as long as copying a number of the input, and as reading a weight once more."""


SHARES = 4
"""Ways to share the work that are worth trying."""


def filters_a_block(conv: Conv) -> int:
    """Return the filters of a block: as in the output's layout, or what divides a group's filters."""
    return channel_block(conv.output_layout) or divisors(conv.k // conv.groups, WIDEST_BLOCK)[-1]


def blocks_of_filters(conv: Conv) -> int:
    """Return how many blocks the filters take; the last one may not be full."""
    return -(-conv.k // filters_a_block(conv))


def whole_tiles(conv: Conv) -> int:
    """Return ``conv.q``, or the columns to compute where it does not divide into tiles (a large prime)."""
    if conv.q <= WIDE:
        return conv.q
    return next(columns for columns in range(conv.q, 2 * conv.q) if divisors(columns, WIDE)[-1] >= NARROW)


def pointwise(conv: Conv) -> bool:
    """Whether an output's place in its plane is its input's, so that rows and columns are one loop."""
    plain = (conv.r, conv.s, conv.strides) == (1, 1, (1, 1)) and not any(conv.padding)
    return plain and whole_tiles(conv) == conv.q


def filter_tiles(conv: Conv, target: Target) -> Sequence[Decisions]:
    """Return the tiles of a convolution whose vectors run over filters, the best guess first.

    A tile has some blocks of filters, or some lanes of a block that is wider than a vector.
    Its sums, the weights of one term and one input have to fit in the registers.
    """
    unit, t = vector_unit(target), filters_a_block(conv)
    widths = divisors(whole_tiles(conv), WIDE)
    if pointwise(conv):
        widths += [rows * conv.q for rows in divisors(conv.p, WIDE // conv.q)[1:]]
    blocks = [(filters, t) for filters in divisors(blocks_of_filters(conv), 8)]
    blocks += [(1, part) for part in unit.lane_choices(t)[1:]]
    vectors = {(filters, lanes): filters * -(-lanes // unit.lanes) for filters, lanes in blocks}
    tiles = [
        (*block, width)
        for block in blocks
        for width in widths
        if vectors[block] * (width + 1) + 1 <= unit.registers
    ]

    def guess(tile: tuple[int, int, int]) -> tuple[float, ...]:
        filters, lanes, width = tile
        wide = vectors[filters, lanes]
        return unit.price(wide, width), abs(wide * width - unit.sums), filters, -lanes

    return [
        {"filters": filters, "lanes": lanes, "columns": width, "order": order}
        for filters, lanes, width in sorted(tiles, key=guess)
        for order in _orders(conv, filters * lanes)
    ]


def _orders(conv: Conv, filters: int) -> tuple[str, ...]:
    """Return the orders to walk over tiles of so many filters, the best guess first."""
    if conv.p * conv.q == 1 or blocks_of_filters(conv) == 1:
        return ("filters",)
    a_filter = 4 * conv.c // conv.groups * conv.r * conv.s
    # Weights that do not stay in the nearest cache are read again in any order, inputs need not be.
    if pointwise(conv) and filters * a_filter > WEIGHT_BYTES and conv.k * a_filter <= PANEL_BYTES:
        return "columns", "rows", "filters"
    return "filters", "rows", "columns"


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

    parts = divisors(blocks_of_filters(conv), 2 * target.threads)
    shares = [(rows, part) for rows in divisors(conv.p, conv.p) if fits(rows) for part in parts]
    return [{"rows": rows, "parts": part} for rows, part in sorted(shares, key=cost)[:SHARES]]


def _splits(conv: Conv, tile: Decisions, share: Decisions) -> bool:
    """Whether blocks of filters divide into the share's parts, and those into the tile's filters."""
    return blocks_of_filters(conv) % (int(tile["filters"]) * int(share["parts"])) == 0


def compute_filters_in_registers(schedule: Schedule, conv: Conv, decisions: Decisions) -> None:
    """Compute a tile of blocks of filters and columns in registers, and finish it from there.

    The sum is stage ``conv`` [n, k / t, p, q, t] with any reductions, in the order in
    which they are to run.  Each thread pads what its share reads, which stays in its
    cache.  ``decisions`` are a point of :func:`shared_filter_tiles`.
    """
    output, convolution = output_and_sum(schedule)
    share, around, inner = _tile_blocks(schedule, output, conv, decisions)
    schedule.compute_at(convolution, [*share, *around][-1], preserve_unit_loops=True)
    schedule.set_scope(convolution, 0, "local")
    pad_at(schedule, conv, share[-1])
    schedule.parallel(schedule.fuse(*share))
    sum_in_registers(schedule, convolution, 1 + len(around))
    if channel_block(conv.output_layout):
        unroll_vectors(schedule, inner)


def _tile_blocks(
    schedule: Schedule, output: SBlockRV, conv: Conv, decisions: Decisions
) -> tuple[list[LoopRV], ...]:
    """Split the output into shares of tiles; return the loops over shares, tiles, and points of a tile."""
    n, block, row, column, *lane = schedule.get_loops(output)
    if not lane:
        block, *lane = schedule.split(block, [None, filters_a_block(conv)])
    blocks, block, lane = split_blocks(schedule, block, lane[0], decisions)
    if int(decisions["columns"]) > conv.q:
        column, row = schedule.fuse(row, column), schedule.add_unit_loop(n)
    columns, column = schedule.split(column, [None, int(decisions["columns"])])
    inner = [block, column, lane] if channel_block(conv.output_layout) else [block, lane, column]
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


def compute_panel_in_registers(schedule: Schedule, conv: Conv, decisions: Decisions) -> None:
    """Write out the patches of a few rows of the output, then compute those rows tile by tile in registers.

    The sum is stage ``conv`` [n, k / t, p, q, t] over stage ``im2col`` [n, groups, p, at, q].
    Each thread has its own rows.  ``decisions`` are a point of :func:`panel_tiles`.
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
    if conv.r * conv.s == 1 and conv.strides == (1, 1):
        schedule.compute_inline(patches)
    else:
        schedule.compute_at(patches, rows, preserve_unit_loops=True)
        schedule.vectorize(schedule.get_loops(patches)[-1])
    schedule.parallel(schedule.fuse(n, rows))
    sum_in_registers(schedule, convolution, 4)
    pad_by_all_threads(schedule, conv)


def _ordered(decisions: Decisions, blocks: LoopRV, row: LoopRV, columns: LoopRV) -> list[LoopRV]:
    """Return the loops over tiles, outermost first.

    ``filters`` reads a block's weights once, ``rows`` an input row once, ``columns`` a tile's input once.
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
    """Return the loops over tiles of filters, over blocks of a tile, and over lanes of a block."""
    blocks, block = schedule.split(block, [None, int(decisions.get("filters", 1))])
    if schedule.get(lane).extent == int(decisions["lanes"]):
        return blocks, block, lane
    parts, lane = schedule.split(lane, [None, int(decisions["lanes"])])
    schedule.reorder(blocks, parts, block)
    return schedule.fuse(blocks, parts), block, lane


def output_and_sum(schedule: Schedule) -> tuple[SBlockRV, SBlockRV]:
    """Return the block that writes the output, and the one of the sum, which becomes another block."""
    output = output_block(schedule)
    if schedule.get(output).name_hint == "conv":
        return schedule.cache_write(output, 0, "local"), output
    return output, stage(schedule, "conv")


def sum_in_registers(
    schedule: Schedule, convolution: SBlockRV, outside: int, vector: int = -1
) -> list[LoopRV]:
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
    unroll_vectors(schedule, tile)
    start = schedule.decompose_reduction(convolution, terms[0])
    unroll_vectors(schedule, schedule.get_loops(start)[outside:])
    return list(terms)


def _last(loops: Sequence[LoopRV], which: int) -> list[LoopRV]:
    """Return ``loops`` with one of them moved to the end."""
    return [loop for loop in loops if loop is not loops[which]] + [loops[which]]


def pad_at(schedule: Schedule, conv: Conv, loop: LoopRV) -> None:
    """Write what a turn of a loop reads of the padded input, in vectors where channels lie side by side."""
    padding = stage(schedule, "pad")
    if padding is not None:
        schedule.compute_at(padding, loop, preserve_unit_loops=True)
        if channel_block(conv.input_layout):
            schedule.vectorize(schedule.get_loops(padding)[-1])


def pad_by_all_threads(schedule: Schedule, conv: Conv) -> None:
    """Write the padded input by all threads, in vectors where channels lie next to each other."""
    padding = stage(schedule, "pad")
    if padding is not None:
        parallelise(schedule, padding, 3)
        if channel_block(conv.input_layout):
            schedule.vectorize(schedule.get_loops(padding)[-1])


def unroll_vectors(schedule: Schedule, loops: Sequence[LoopRV]) -> None:
    """Make the last loop a vector and write the others out."""
    for loop in loops[:-1]:
        schedule.unroll(loop)
    schedule.vectorize(loops[-1])
