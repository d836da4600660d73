"""The stages of a minimal filtering algorithm as TE tensors, channels and filters in blocks."""

from __future__ import annotations

from dataclasses import dataclass

from tvm import te, tirx
from tvm.ir import Expr

from dlas.schedules.loops.numbers import border, converted
from dlas.schedules.loops.vectors import WIDEST_BLOCK, blocked_layout, divisors
from dlas.schedules.minimal_filtering.matrices import KERNEL, element, transforms
from dlas.stack import Conv, channel_block

LARGEST_PANEL = 60
"""Most tiles by whose number the number of all tiles is made divisible."""
WIDTHS = {6: 1.0, 5: 1.02, 4: 1.1}
"""Tiles multiplied together in registers, and the time of a product relative to the best, with AVX2."""


@dataclass(frozen=True)
class TileGrid:
    """The tiles of a convolution, numbered row by row."""

    size: int
    """m, the outputs along each side of a tile."""
    rows: int
    """Tiles along the height and the width of the output."""
    columns: int
    """Tiles along the height and the width of the output."""
    count: int
    """Tiles of an image that are computed: a few beyond the last one, so that their number has divisors."""
    channels: int
    """Those of a block."""
    filters: int
    """Those of a block."""

    @classmethod
    def of(cls, conv: Conv, size: int) -> TileGrid:
        """Return the tiles of a convolution."""
        rows, columns = -(-conv.p // size), -(-conv.q // size)
        channels = channel_block(conv.input_layout) or channel_block(blocked_layout(conv.c)) or conv.c
        return cls(size, rows, columns, _divisible(rows * columns), channels, filters_together(conv))

    @property
    def inputs(self) -> int:
        """Inputs along each side of a tile."""
        return self.size + KERNEL - 1


def filters_together(conv: Conv) -> int:
    """Return the filters of a block, none of which has filters of several groups."""
    if conv.groups > 1:
        return divisors(conv.k // conv.groups, WIDEST_BLOCK)[-1]
    return channel_block(conv.output_layout) or channel_block(blocked_layout(conv.k)) or conv.k


def _divisible(tiles: int) -> int:
    """Return a number of tiles, at least so many, that divides well into panels of register tiles."""
    if tiles <= min(WIDTHS):
        return tiles

    def cost(panel: int) -> float:
        slow = min(slow for width, slow in WIDTHS.items() if panel % width == 0)
        return -(-tiles // panel) * panel * slow * (1 + 0.5 / panel)

    panels = {width * number for width in WIDTHS for number in range(1, LARGEST_PANEL // width + 1)}
    panel = min(panels, key=cost)
    return -(-tiles // panel) * panel


def pad_blocks(x: te.Tensor, conv: Conv, grid: TileGrid) -> te.Tensor:
    """Return the padded input as stage ``pad`` [n, c / b, height, width, b], with all that tiles read."""
    top, left, _, _ = conv.padding
    height, width = (tiles * grid.size + KERNEL - 1 for tiles in (grid.rows, grid.columns))
    outside, zero = border(conv, str(x.dtype)), tirx.const(0, x.dtype)
    b, blocked = grid.channels, channel_block(conv.input_layout)

    def point(n: Expr, block: Expr, i: Expr, j: Expr, lane: Expr) -> Expr:
        i, j = i - top, j - left
        inside = tirx.all(i >= 0, i < conv.h, j >= 0, j < conv.w)
        if blocked:
            return tirx.if_then_else(inside, x(n, block, i, j, lane), outside)
        c = block * b + lane
        value = tirx.if_then_else(inside, x(n, c, i, j), outside)
        return value if conv.c % b == 0 else tirx.if_then_else(c < conv.c, value, zero)

    return te.compute((conv.n, -(-conv.c // b), height, width, b), point, name="pad")


def to_tiles(padded: te.Tensor, conv: Conv, grid: TileGrid) -> te.Tensor:
    """Return B^T d B of the input d of each tile in the type of sums, [n, m + 2, m + 2, c / b, tile, b]."""
    b, _, _ = transforms(grid.size)
    n, blocks, _, _, lanes = padded.shape
    side, last = range(grid.inputs), grid.rows * grid.columns - 1

    def row(n: Expr, block: Expr, tile: Expr, i: Expr, j: Expr, lane: Expr) -> Expr:
        tile = tirx.min(tile, last)  # those beyond it are computed for nothing
        top, left = tile // grid.columns * grid.size, tile % grid.columns * grid.size
        read = [padded(n, block, top + e, left + j, lane) for e in side]
        return element(b, i, [converted(value, conv.accumulator_type) for value in read])

    shape = (n, blocks, grid.count, grid.inputs, grid.inputs, lanes)
    rows = te.compute(shape, row, name="to_tiles_rows")

    def point(n: Expr, i: Expr, j: Expr, block: Expr, tile: Expr, lane: Expr) -> Expr:
        return element(b, j, [rows(n, block, tile, i, e, lane) for e in side])

    shape = (n, grid.inputs, grid.inputs, blocks, grid.count, lanes)
    return te.compute(shape, point, name="to_tiles")


def multiply(tiles: te.Tensor, filters: te.Tensor, conv: Conv, grid: TileGrid) -> te.Tensor:
    """Return the sums over channels of filters times tiles, [n, k / t, m + 2, m + 2, tile, t]."""
    blocks, _, _, channels, t = (int(extent) for extent in filters.shape)
    c = te.reduce_axis((0, channels), "c")

    def point(n: Expr, block: Expr, i: Expr, j: Expr, tile: Expr, lane: Expr) -> Expr:
        first = block * t // (conv.k // conv.groups) * channels if conv.groups > 1 else 0
        channel = first + c
        value = tiles[n, i, j, channel // grid.channels, tile, channel % grid.channels]
        return te.sum(value * filters[block, i, j, c, lane], axis=c)

    return te.compute((conv.n, blocks, grid.inputs, grid.inputs, grid.count, t), point, name="conv")


def from_tiles(products: te.Tensor, conv: Conv, grid: TileGrid) -> te.Tensor:
    """Return A^T M A of each tile's products M, assembled in the output's layout."""
    _, _, a = transforms(grid.size)
    n, blocks, _, _, count, t = products.shape
    side = range(grid.inputs)

    def row(n: Expr, block: Expr, tile: Expr, y: Expr, j: Expr, lane: Expr) -> Expr:
        return element(a, y, [products(n, block, e, j, tile, lane) for e in side])

    rows = te.compute((n, blocks, count, grid.size, grid.inputs, t), row, name="from_tiles_rows")

    def point(n: Expr, block: Expr, tile: Expr, y: Expr, z: Expr, lane: Expr) -> Expr:
        return element(a, z, [rows(n, block, tile, y, e, lane) for e in side])

    tiled = te.compute((n, blocks, count, grid.size, grid.size, t), point, name="from_tiles")

    def output(n: Expr, k: Expr, p: Expr, q: Expr, *lane: Expr) -> Expr:
        block, lane = (k, lane[0]) if lane else (k // t, k % t)
        tile = p // grid.size * grid.columns + q // grid.size
        return tiled(n, block, tile, p % grid.size, q % grid.size, lane)

    return te.compute(conv.output_shape, output, name="untile")
