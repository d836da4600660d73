"""Register tiles whose vector lanes are filters: which fit a target, the best guess first.

A tile has few parameters: how many filters, rows and columns it has, and in which order
threads walk over tiles.  What fits comes from the target's vector registers, so the same
source serves AVX2, AVX-512 and Neon.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import tvm

from dlas.schedules.loops.vectors import WIDEST_BLOCK, VectorUnit, divisors, vector_unit
from dlas.stack import Conv, Decisions, Target, channel_block

WIDE = 28
"""Most columns of a tile that are worthwhile."""
REMAINDERS = 2
"""Widths of tiles with so many vectors that are worth trying although they do not divide a row."""
THINS_FROM = 4
"""Fewest blocks of filters that repay copying the pixels which strides do not skip."""
JOINS_FOR = 0.01
"""What more rows joined into one have to save, as a share of the time: more rows need more cache."""
PANEL_BYTES = 2**18
"""Largest size of the patches of a few rows, or of all weights, that stays in a second-level cache."""
WEIGHT_BYTES = 2**15
"""Largest size of a tile's weights that stays in a first-level cache."""
INPUT_BYTES = 2**20
"""Largest size of an input that stays in a second-level cache while blocks of filters read it in turn."""
STREAMED_INPUT_BYTES, STREAMED_WEIGHT_BYTES = 3 * 2**17, 2**21
"""Inputs from this size on are read once, if all weights have at most this size and stream past each tile."""
SHARE_BYTES = 2**19
"""Largest size of a task's padded input that stays in a second-level cache."""
COPIED, READ = 17.0, 1.7
"""Costs of copying one input element and of reading a weight again, in multiply-adds."""
SHARES = 4
"""Ways to divide the work into tasks that are worth trying."""
RowTile = tuple[int, int, float]
"""Columns of a tile, rows joined into one, and the price of such a row."""


def element_bytes(dtype: str) -> int:
    """Return the bytes of one number of a type."""
    return -(-int(tvm.DataType(dtype).bits) // 8)


def filters_a_block(conv: Conv) -> int:
    """Return the filters of a block: as in the output's layout, or what divides a group's filters."""
    return channel_block(conv.output_layout) or divisors(conv.k // conv.groups, WIDEST_BLOCK)[-1]


def blocks_of_filters(conv: Conv) -> int:
    """Return how many blocks the filters fill; the last one may be partly filled."""
    return -(-conv.k // filters_a_block(conv))


def pointwise(conv: Conv) -> bool:
    """Whether a pixel of the output reads one of the input, so that rows and columns can be one loop."""
    return (conv.r, conv.s) == (1, 1) and not any(conv.padding) and (conv.strides == (1, 1) or thins(conv))


def thins(conv: Conv) -> bool:
    """Whether the pixels that a 1x1 convolution with strides reads are worth being copied together first.

    Pixels apart from each other fill few sets of a cache, and every block of filters reads them again.
    """
    strided = (conv.r, conv.s) == (1, 1) and conv.strides != (1, 1) and not any(conv.padding)
    return strided and blocks_of_filters(conv) >= THINS_FROM


def filter_tiles(conv: Conv, target: Target, joins: bool, unit: VectorUnit | None = None) -> list[Decisions]:
    """Return the register tiles whose vector lanes are filters, the best guess first.

    A tile has several blocks of filters, or part of a block that is wider than a vector.
    The last tile of a row is narrower where ``columns`` does not divide it.

    Parameters
    ----------
    joins : bool
        Whether a tile may cross from one row into the next: ``joined`` rows make one.
    unit : VectorUnit, optional
        Registers to fill; by default the target's, with sums in float32.
    """
    unit, t = unit or vector_unit(target), filters_a_block(conv)
    blocks = [(filters, t) for filters in divisors(blocks_of_filters(conv), 8)]
    blocks += [(1, part) for part in unit.lane_choices(t)[1:]]
    tiles = []
    for filters, lanes in blocks:
        vectors = filters * unit.vectors(lanes)
        for width, joined, price in row_tiles(conv, unit, vectors, joins):
            remainder = joined * conv.q % width > 0
            guess = round(price, 2), remainder, abs(vectors * width - unit.sums), filters, joined, -lanes
            tile = {"filters": filters, "lanes": lanes, "columns": width}
            tiles.append((guess, {**tile, "joined": joined} if joins else tile))
    tiles.sort(key=lambda tile: tile[0])
    return [
        {**tile, "order": order}
        for _, tile in tiles
        for order in _orders(conv, int(tile["filters"]) * int(tile["lanes"]))
    ]


def row_tiles(conv: Conv, unit: VectorUnit, vectors: int, joins: bool = False) -> list[RowTile]:
    """Return tiles of so many vectors: all that divide a row, and a few that do not but cost less."""
    rows = divisors(conv.p, conv.p) if joins else [1]
    dividing: list[RowTile] = []
    others: list[RowTile] = []
    for width in range(1, min(WIDE, rows[-1] * conv.q) + 1):
        if not unit.fits(vectors, width):
            continue
        prices = {r: unit.price(vectors, width, r * conv.q) for r in rows if r * conv.q >= width}
        joined = next(r for r in prices if prices[r] <= min(prices.values()) + JOINS_FOR)
        divides = joined * conv.q % width == 0
        (dividing if divides else others).append((width, joined, prices[joined]))
    others.sort(key=lambda tile: tile[2])
    least = min((price for _, _, price in dividing), default=math.inf)
    return dividing + [tile for tile in others[:REMAINDERS] if tile[2] < least]


def _orders(conv: Conv, filters: int) -> tuple[str, ...]:
    """Return the orders of the loops over tiles of so many filters, the best guess first."""
    if conv.p * conv.q == 1 or blocks_of_filters(conv) == 1:
        return ("filters",)
    a_filter = element_bytes(conv.weight_type) * conv.c // conv.groups * conv.r * conv.s
    if pointwise(conv):
        pixels = element_bytes(conv.input_type) * conv.c * conv.p * conv.q
        tile, weights = filters * a_filter, conv.k * a_filter
        large = pixels > INPUT_BYTES
        # A tile's weights leave no room in the first-level cache, and the input none in the second:
        # each tile of pixels is read once, and the weights stream past it.
        stream = tile >= WEIGHT_BYTES and weights <= STREAMED_WEIGHT_BYTES
        if stream and STREAMED_INPUT_BYTES < pixels <= INPUT_BYTES:
            return "columns", "rows", "filters"
        # Weights that exceed the first-level cache are read again in any order; inputs need not be.
        if (large or tile > WEIGHT_BYTES) and weights <= PANEL_BYTES:
            return "columns", "rows", "filters"
        if large:
            return "rows", "columns", "filters"
    return "filters", "rows", "columns"


def shared_filter_tiles(conv: Conv, target: Target, unit: VectorUnit | None = None) -> Sequence[Decisions]:
    """Return the tiles of :func:`filter_tiles` with a division into tasks, each padding its own input.

    A task computes ``rows`` rows of the output and one of ``parts`` parts of the filters.
    """
    tiles = filter_tiles(conv, target, pointwise(conv), unit)
    if not any(conv.padding):
        return tiles
    shares = _shares(conv, target, conv.padding[1] + conv.w + conv.padding[3])
    return [{**tile, **share} for share in shares for tile in tiles if _splits(conv, tile, share)]


def dividing(tiles: Sequence[Decisions], conv: Conv) -> Sequence[Decisions]:
    """Return the tiles that divide their rows: the last one of a row is not narrower."""
    return [tile for tile in tiles if int(tile.get("joined", 1)) * conv.q % int(tile["columns"]) == 0]


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
        return rows == 1 or element_bytes(conv.input_type) * conv.c * width * read(rows) <= SHARE_BYTES

    parts = divisors(blocks_of_filters(conv), 2 * target.threads)
    shares = [(rows, part) for rows in divisors(conv.p, conv.p) if fits(rows) for part in parts]
    return [{"rows": rows, "parts": part} for rows, part in sorted(shares, key=cost)[:SHARES]]


def _splits(conv: Conv, tile: Decisions, share: Decisions) -> bool:
    """Whether the blocks of filters divide evenly into parts, and those into tiles."""
    return blocks_of_filters(conv) % (int(tile["filters"]) * int(share["parts"])) == 0


def panel_tiles(conv: Conv, target: Target, unit: VectorUnit | None = None) -> Sequence[Decisions]:
    """Return register tiles of the matrix product, each with how many rows im2col writes at a time."""
    tiles = filter_tiles(conv, target, joins=False, unit=unit)
    a_row = element_bytes(conv.input_type) * conv.c * conv.r * conv.s * conv.q
    rows = [rows for rows in divisors(conv.p, 8) if rows == 1 or rows * a_row <= PANEL_BYTES]
    return [{**tile, "rows": number} for tile in tiles for number in rows]
