"""Register tiles whose vector lanes are filters: which fit a target, the best guess first.

A tile has few parameters: how many filters, rows and columns it has, and in which order
threads walk over tiles.  What fits comes from the target's vector registers, so the same
source serves AVX2, AVX-512 and Neon.
"""

from __future__ import annotations

from collections.abc import Sequence

from dlas.schedules.loops.transformations import padded_size
from dlas.schedules.loops.vectors import WIDEST_BLOCK, divisors, vector_unit
from dlas.stack import Conv, Decisions, Target, channel_block

NARROW, WIDE = 7, 28
"""Fewest and most columns of a tile that are worthwhile."""
PANEL_BYTES = 2**18
"""Largest size of the patches of a few rows, or of all weights, that stays in a second-level cache."""
WEIGHT_BYTES = 2**15
"""Largest size of a tile's weights that stays in a first-level cache."""
SHARE_BYTES = 2**19
"""Largest size of a task's padded input that stays in a second-level cache."""
COPIED, READ = 17.0, 1.7
"""Costs of copying one input element and of reading a weight again, in multiply-adds."""
SHARES = 4
"""Ways to divide the work into tasks that are worth trying."""


def filters_a_block(conv: Conv) -> int:
    """Return the filters of a block: as in the output's layout, or what divides a group's filters."""
    return channel_block(conv.output_layout) or divisors(conv.k // conv.groups, WIDEST_BLOCK)[-1]


def blocks_of_filters(conv: Conv) -> int:
    """Return how many blocks the filters fill; the last one may be partly filled."""
    return -(-conv.k // filters_a_block(conv))


def whole_tiles(conv: Conv) -> int:
    """Return ``conv.q``, or more columns where it does not divide into tiles (a large prime)."""
    if conv.q <= WIDE:
        return conv.q
    return next(columns for columns in range(conv.q, 2 * conv.q) if divisors(columns, WIDE)[-1] >= NARROW)


def pointwise(conv: Conv) -> bool:
    """Whether output (p, q) reads input (p, q) alone, so that rows and columns can be one loop."""
    plain = (conv.r, conv.s, conv.strides) == (1, 1, (1, 1)) and not any(conv.padding)
    return plain and whole_tiles(conv) == conv.q


def filter_tiles(conv: Conv, target: Target) -> Sequence[Decisions]:
    """Return the register tiles whose vector lanes are filters, the best guess first.

    A tile has several blocks of filters, or part of a block that is wider than a vector.
    Its accumulators, the weights of one term and one input have to fit in the registers.
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
    """Return the orders of the loops over tiles of so many filters, the best guess first."""
    if conv.p * conv.q == 1 or blocks_of_filters(conv) == 1:
        return ("filters",)
    a_filter = 4 * conv.c // conv.groups * conv.r * conv.s
    # Weights that exceed the first-level cache are read again in any order; inputs need not be.
    if pointwise(conv) and filters * a_filter > WEIGHT_BYTES and conv.k * a_filter <= PANEL_BYTES:
        return "columns", "rows", "filters"
    return "filters", "rows", "columns"


def shared_filter_tiles(conv: Conv, target: Target) -> Sequence[Decisions]:
    """Return the tiles of :func:`filter_tiles` with a division into tasks, each padding its own input.

    A task computes ``rows`` rows of the output and one of ``parts`` parts of the filters.
    """
    tiles, (height, width) = filter_tiles(conv, target), padded_size(conv, whole_tiles(conv))
    if (height, width) == (conv.h, conv.w):
        return tiles
    shares = _shares(conv, target, width)
    return [{**tile, **share} for share in shares for tile in tiles if _splits(conv, tile, share)]


def _shares(conv: Conv, target: Target, width: int) -> list[Decisions]:
    """Return the divisions into tasks that cost least, for an input padded to ``width``.

    Threads are idle while the last task runs; rows are copied for every part of the
    filters, those at the edges by two tasks; and each task reads its weights.
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
    """Whether the blocks of filters divide evenly into parts, and those into tiles."""
    return blocks_of_filters(conv) % (int(tile["filters"]) * int(share["parts"])) == 0


def panel_tiles(conv: Conv, target: Target) -> Sequence[Decisions]:
    """Return register tiles of the matrix product, each with how many rows im2col writes at a time."""
    tiles = [tile for tile in filter_tiles(conv, target) if conv.q % int(tile["columns"]) == 0]
    a_row = 4 * conv.c * conv.r * conv.s * conv.q
    rows = [rows for rows in divisors(conv.p, 8) if rows == 1 or rows * a_row <= PANEL_BYTES]
    return [{**tile, "rows": number} for tile in tiles for number in rows]
