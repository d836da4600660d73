"""Winograd convolution: 3x3 kernels with fewer multiplications, in tiles of 2x2 or 4x4 outputs."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import ClassVar, Literal

import numpy as np
import numpy.typing as npt
from tvm import te
from tvm.ir import Expr
from tvm.s_tir import Schedule
from tvm.s_tir.schedule import SBlockRV

from dlas.schedules.loops.transformations import (
    accumulate_at,
    in_registers,
    inline,
    only_nchw,
    output_block,
    pad,
    parallelise,
    schedule_padding,
    spread,
    stage,
    start_once,
)
from dlas.schedules.loops.vectors import divisors, vector_unit
from dlas.stack import Algorithm, Array, Conv, Decisions, Tail, Target

KERNEL = 3
"""Rows and columns of the kernels that are transformed."""
POINTS = {2: (0, 1, -1), 4: (0, 1, -1, Fraction(1, 2), -2)}
"""Points where polynomials are evaluated, by tile; infinity is added to them."""


@dataclass(frozen=True)
class Winograd(Algorithm):
    """Transform tiles of the input, multiply them by transformed filters, and transform back, in NCHW.

    A tile of m x m outputs takes (m + 2)^2 multiplications a channel instead
    of 9 m^2: 2.25 times fewer for m = 2, four times fewer for m = 4.  Filters are
    transformed when the network is compiled.  Tiles at the edge compute outputs
    that are dropped.  The minimal schedule uses threads only.

    Parameters
    ----------
    tile : {2, 4}
        m, the outputs along each side of a tile.  With 512 channels of normally
        distributed inputs the error is 1e-6 of the largest output for m = 2 and 7e-6
        for m = 4, against 2.5e-6 for a direct convolution.

    References
    ----------
    A. Lavin and S. Gray, "Fast Algorithms for Convolutional Neural Networks", 2015.
    B. Barabasz et al., "Error Analysis and Improving the Accuracy of Winograd
    Convolution for Deep Neural Networks", 2020 (the points of the larger tile).
    DLAS paper, section 4.4 (the minimal schedule).
    """

    tolerance: ClassVar[float] = 2e-5
    tile: Literal[2, 4] = 4

    def supports(self, conv: Conv) -> str | None:
        """Return why ``conv`` is declined: all but plain 3x3 kernels, in float32 and NCHW."""
        if (conv.r, conv.s) != (KERNEL, KERNEL):
            return f"only 3x3 kernels are transformed, not {conv.r}x{conv.s}"
        if conv.strides != (1, 1):
            return f"only strides of 1 are possible, not {conv.strides}"
        if conv.dilation != (1, 1):
            return f"only dilations of 1 are possible, not {conv.dilation}"
        if conv.accumulator_type != "float32":
            return f"the transforms need float32, not {conv.accumulator_type}"
        return only_nchw(conv)

    def pack(self, weight: Array, conv: Conv) -> tuple[Array, ...]:
        """Return the filters G g G^T [k, c / groups, m + 2, m + 2], computed in float64, then B^T and A^T."""
        b, g, a = transforms(self.tile)
        return tuple(array.astype(conv.accumulator_type) for array in (g @ weight @ g.T, b, a))

    def unpack(self, packed: Sequence[Array], conv: Conv) -> Array:
        """Return the weight [k, c / groups, 3, 3]."""
        _, g, _ = transforms(self.tile)
        back = np.linalg.pinv(g)
        weight: Array = back @ packed[0] @ back.T
        return weight.astype(conv.weight_type)

    def compute(self, x: te.Tensor, packed: Sequence[te.Tensor], conv: Conv, tail: Tail) -> te.Tensor:
        """Return the finished output [n, k, p, q] of ``x`` [n, c, h, w]."""
        filters, b, a = packed
        tiles = to_tiles(x, b, conv, self.tile)
        return tail(from_tiles(multiply(tiles, filters, conv), a, conv))

    def schedule(self, schedule: Schedule, conv: Conv, target: Target) -> None:
        """Share among threads the input transform, then products and output transform, then the tail."""
        gpu = target.on_gpu
        inline(schedule, "untile")
        spread(schedule, output_block(schedule), 4, gpu)
        tiles = accumulate_at(schedule, join(schedule, "from_tiles", gpu), 4, gpu)
        spread(schedule, tiles, 4, gpu)
        start_once(schedule, 1)
        spread(schedule, join(schedule, "to_tiles", gpu), 4, gpu)
        schedule_padding(schedule, gpu)

    def space(self, conv: Conv, target: Target) -> Sequence[Decisions]:
        """Return how many filters and tiles a register tile has, and which of them the outer loop is over."""
        return () if target.on_gpu else product_tiles(conv, self.tile, target)

    def apply(self, schedule: Schedule, conv: Conv, target: Target, decisions: Decisions) -> None:
        """Multiply blocks of filters and tiles in registers; vector lanes are the elements of a tile."""
        inline(schedule, "untile")
        parallelise(schedule, output_block(schedule), 3)
        for name in ("from_tiles", "to_tiles"):
            transform_in_vectors(schedule, name)
        multiply_in_registers(schedule, self.tile, decisions)
        schedule_padding(schedule, gpu=False)


def transforms(tile: int) -> tuple[npt.NDArray[np.float64], ...]:
    """Return the matrices B^T, G and A^T of a tile in float64."""
    b, g, a = (matrix.astype(np.float64) for matrix in cook_toom(POINTS[tile]))
    return b, g, a


def cook_toom(places: Iterable[int | Fraction]) -> tuple[Array, ...]:
    """Return the matrices B^T, G and A^T that these points and infinity give, in fractions.

    Of a row d of m + 2 inputs, a kernel g makes the m outputs A^T ((G g) * (B^T d)).
    That is a product of polynomials, transposed: evaluate both at the points (G and
    A), multiply there, and interpolate (B, with Lagrange's denominators in G).
    """
    points = [Fraction(place) for place in places]
    others = {point: [other for other in points if other != point] for point in points}
    tile, powers = len(points) + 2 - KERNEL, range(KERNEL)
    b = [[*polynomial(others[point]), 0] for point in points]
    g = [[point**i / math.prod(point - other for other in others[point]) for i in powers] for point in points]
    a = [[*(point**i for point in points), int(i == tile - 1)] for i in range(tile)]
    return np.array([*b, polynomial(points)]), np.array([*g, [0, 0, 1]]), np.array(a)


def polynomial(roots: Iterable[Fraction]) -> Array:
    """Return the coefficients of the product of all (x - root), the constant first."""
    return functools.reduce(np.convolve, ([-root, Fraction(1)] for root in roots), np.array([Fraction(1)]))


def to_tiles(x: te.Tensor, b: te.Tensor, conv: Conv, tile: int) -> te.Tensor:
    """Return B^T d B of the input d under each tile, [n, p / m, q / m, c, m + 2, m + 2]."""
    top, left, bottom, right = conv.padding
    whole = replace(conv, padding=(top, left, bottom + -conv.p % tile, right + -conv.q % tile))
    padded = pad(x, whole)

    def patch(n: Expr, pt: Expr, qt: Expr, c: Expr, i: Expr, j: Expr) -> Expr:
        return padded[n, c, pt * tile + i, qt * tile + j].astype(conv.accumulator_type)

    return both_sides(b, patch, (conv.n, whole.p // tile, whole.q // tile, conv.c), "to_tiles")


def multiply(tiles: te.Tensor, filters: te.Tensor, conv: Conv) -> te.Tensor:
    """Return filters times tiles elementwise, summed over channels, [n, k, p / m, q / m, m + 2, m + 2]."""
    channels, filters_a_group = conv.c // conv.groups, conv.k // conv.groups
    c = te.reduce_axis((0, channels), "c")

    def point(n: Expr, k: Expr, pt: Expr, qt: Expr, i: Expr, j: Expr) -> Expr:
        first = k // filters_a_group * channels
        return te.sum(filters[k, c, i, j] * tiles[n, pt, qt, first + c, i, j], axis=c)

    n, pt, qt, _, i, j = tiles.shape
    return te.compute((n, conv.k, pt, qt, i, j), point, name="conv")


def from_tiles(products: te.Tensor, a: te.Tensor, conv: Conv) -> te.Tensor:
    """Return A^T M A of each tile's products M, assembled into the output [n, k, p, q]."""
    tile, _ = (int(extent) for extent in a.shape)
    tiled = both_sides(a, products, products.shape[:4], "from_tiles")

    def point(n: Expr, k: Expr, p: Expr, q: Expr) -> Expr:
        return tiled[n, k, p // tile, q // tile, p % tile, q % tile]

    return te.compute((conv.n, conv.k, conv.p, conv.q), point, name="untile")


def both_sides(
    matrix: te.Tensor, square: Callable[..., Expr], grid: Sequence[Expr | int], name: str
) -> te.Tensor:
    """Return matrix @ square @ matrix.T at each place of a grid, as stage ``name`` behind ``name``_rows."""
    size, length = matrix.shape
    a, b = te.reduce_axis((0, length), "a"), te.reduce_axis((0, length), "b")

    def row(*at: Expr) -> Expr:
        *place, i, j = at
        return te.sum(matrix[i, a] * square(*place, a, j), axis=a)

    rows = te.compute((*grid, size, length), row, name=f"{name}_rows")

    def point(*at: Expr) -> Expr:
        *place, i, j = at
        return te.sum(rows(*place, i, b) * matrix[j, b], axis=b)

    return te.compute((*grid, size, size), point, name=name)


def join(schedule: Schedule, name: str, gpu: bool) -> SBlockRV:
    """Fuse the two matrix products of a transform; return the block that writes its result."""
    rows, whole = stage(schedule, f"{name}_rows"), stage(schedule, name)
    finished = in_registers(schedule, whole, 4) if gpu else whole
    schedule.compute_at(rows, schedule.get_loops(finished)[3], preserve_unit_loops=True)
    schedule.set_scope(rows, 0, "local" if gpu else "global")
    return finished


def product_tiles(conv: Conv, tile: int, target: Target) -> Sequence[Decisions]:
    """Return the blocks of filters and tiles whose products fit in the registers, the best guess first."""
    unit = vector_unit(target)
    vectors = (tile + 2) ** 2 // lanes_of(tile) * -(-lanes_of(tile) // unit.lanes)
    blocks = [
        (filters, tiles)
        for filters in divisors(conv.k // conv.groups, 8)
        for tiles in divisors(-(-conv.q // tile), 8)
        if vectors * (filters * tiles + 1) + filters + tiles <= unit.registers + vectors
    ]
    blocks.sort(key=lambda block: (-block[0] * block[1] / (block[0] + block[1]), -block[0]))
    return [{"filters": f, "tiles": t, "order": o} for f, t in blocks for o in ("filters", "tiles")]


def lanes_of(tile: int) -> int:
    """Return how many of a tile's (m + 2)^2 elements make a vector: 16 of 16, or 12 of 36."""
    return 16 if tile == 2 else 12


def multiply_in_registers(schedule: Schedule, tile: int, decisions: Decisions) -> None:
    """Accumulate a block of products over channels in registers."""
    products = stage(schedule, "conv")
    written = schedule.cache_write(products, 0, "local")
    n, k, pt, qt, i, j, c = schedule.get_loops(products)
    filters, k = schedule.split(k, [None, int(decisions["filters"])])
    tiles, t = schedule.split(qt, [None, int(decisions["tiles"])])
    vectors, lane = schedule.split(schedule.fuse(i, j), [None, lanes_of(tile)])
    outer = [n, filters, pt, tiles] if decisions["order"] == "filters" else [n, pt, tiles, filters]
    schedule.reorder(*outer, c, k, t, vectors, lane)
    block = schedule.fuse(*outer)
    schedule.parallel(block)
    schedule.reverse_compute_at(written, block, preserve_unit_loops=True)
    write_in_vectors(schedule, written, 1, tile)
    for loop in (k, t, vectors):
        schedule.unroll(loop)
    schedule.vectorize(lane)
    start = schedule.decompose_reduction(products, c)
    for loop in schedule.get_loops(start)[1:-1]:
        schedule.unroll(loop)
    schedule.vectorize(schedule.get_loops(start)[-1])


def write_in_vectors(schedule: Schedule, written: SBlockRV, outside: int, tile: int) -> None:
    """Store the accumulators to memory, in vectors."""
    *places, i, j = schedule.get_loops(written)[outside:]
    vectors, lane = schedule.split(schedule.fuse(i, j), [None, lanes_of(tile)])
    schedule.vectorize(lane)
    for loop in (*places, vectors):
        schedule.unroll(loop)


def transform_in_vectors(schedule: Schedule, name: str) -> None:
    """Share the tiles of a transform among threads; vectorise each row of a tile's matrix products."""
    rows, whole = stage(schedule, f"{name}_rows"), stage(schedule, name)
    place = parallelise(schedule, whole, 3)
    schedule.compute_at(rows, place, preserve_unit_loops=True)
    schedule.set_scope(rows, 0, "local")
    for block in (rows, whole):
        *_, i, j, term = schedule.get_loops(block)
        schedule.reorder(i, term, j)
        schedule.unroll(i)
        schedule.unroll(term)
        schedule.vectorize(j)
        start = schedule.decompose_reduction(block, term)
        schedule.vectorize(schedule.get_loops(start)[-1])
