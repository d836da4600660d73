"""The input as spatial pack reads it: packed into tiles at run time, or in blocks of channels as it is."""

from __future__ import annotations

from dataclasses import replace

from tvm import te, tirx
from tvm.ir import Expr

from dlas.schedules.loops.filter_tiles import thins
from dlas.schedules.loops.transformations import pad, thin
from dlas.schedules.spatial_packing.blocks import Pixels, joins_rows
from dlas.stack import Conv, channel_block

ROWS = 2
COLUMNS = 8
"""The largest tile of the input, in rows and columns of the output."""


def pixels_of(x: te.Tensor, conv: Conv, layout: str) -> Pixels:
    """Return the function to the input's elements, which are packed with the layout ``nchw``."""
    block = channel_block(conv.input_layout)
    if joins_rows(conv) and thins(conv):
        x, conv = thin(x, conv), replace(conv, h=conv.p, w=conv.q, strides=(1, 1))
    padded = pad(x, conv)
    if layout == "nchw":
        return pack_input(padded, conv)

    def pixel(n: Expr, c: Expr, p: Expr, q: Expr, r: Expr, s: Expr) -> Expr:
        i, j = p * conv.strides[0] + r * conv.dilation[0], q * conv.strides[1] + s * conv.dilation[1]
        return padded(n, c // block, i, j, c % block) if block else padded(n, c, i, j)

    return pixel


def pack_input(padded: te.Tensor, conv: Conv) -> Pixels:
    """Pack the input in stage ``tiles``; return the function to its elements.

    The stage is [n, p / rows, q / columns, c, height, width].  A tile holds all that a
    tile of the output reads, so neighbouring tiles overlap.  Beyond the input's edge a
    tile holds zeros, which only contribute to outputs that are dropped.
    """
    rows, columns = min(ROWS, conv.p), min(COLUMNS, conv.q)
    height = (rows - 1) * conv.strides[0] + (conv.r - 1) * conv.dilation[0] + 1
    width = (columns - 1) * conv.strides[1] + (conv.s - 1) * conv.dilation[1] + 1
    _, _, h, w = padded.shape

    def element(n: Expr, pt: Expr, qt: Expr, c: Expr, i: Expr, j: Expr) -> Expr:
        row, column = pt * rows * conv.strides[0] + i, qt * columns * conv.strides[1] + j
        there = tirx.all(row < h, column < w)
        return tirx.if_then_else(there, padded[n, c, row, column], tirx.const(0, padded.dtype))

    grid = (conv.n, -(-conv.p // rows), -(-conv.q // columns))
    tiles = te.compute((*grid, conv.c, height, width), element, name="tiles")

    def pixel(n: Expr, c: Expr, p: Expr, q: Expr, r: Expr, s: Expr) -> Expr:
        i = p % rows * conv.strides[0] + r * conv.dilation[0]
        j = q % columns * conv.strides[1] + s * conv.dilation[1]
        return tiles(n, p // rows, q // columns, c, i, j)

    return pixel
