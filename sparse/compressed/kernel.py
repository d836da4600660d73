"""The kernel of a sparse convolution: products of stored weights and inputs, their sums, and the tail."""

from __future__ import annotations

import math
from collections.abc import Sequence

from tvm import tirx
from tvm.ir import Expr
from tvm.script.ir_builder import tirx as T

from dlas.schedules.loops.numbers import converted
from dlas.sparse.compressed.blocks import block, scratch, whole
from dlas.sparse.compressed.padding import pixel, written_region
from dlas.sparse.compressed.planes import Planes
from dlas.stack import Tail


def sum_products(
    planes: Planes, laid: tirx.Buffer, csr: Sequence[tirx.Buffer], shape: Sequence[Expr]
) -> tirx.Buffer:
    """Write block ``products``, the sums over each block of channels, and block ``conv``, which adds them up.

    Values are [entries, height] and offsets [entries]; for dot products, [groups, height, terms] and
    [groups, terms].  Returns the sums [n, bands, rows, height, places of a band].
    """
    values, offsets, starts = csr
    conv, (rows, height) = planes.conv, map(int, shape)
    points = {"n": conv.n, "band": planes.bands, "row": rows, "filter": height, "place": planes.band.places}
    blocks, most = {"block": (int(starts.shape[0]) - 1) // rows}, conv.c // conv.groups * conv.r * conv.s
    together = [int(extent) for extent in offsets.shape[1:]]
    terms = {"entry": -(-most // math.prod(together)), **({"term": together[0]} if together else {})}
    zero = tirx.const(0, conv.accumulator_type)
    products = scratch("products", (*blocks.values(), *points.values()), conv.accumulator_type)
    sums = scratch("sums", tuple(points.values()), conv.accumulator_type)
    with block("products", {**blocks, **points}, terms) as axes:
        at, (entry, *term) = axes[: 1 + len(points)], axes[1 + len(points) :]
        part, n, band, row, lane, place = at
        start, end = (starts[part * rows + row + i] for i in (0, 1))
        T.reads(*map(whole, csr), written_region(planes, laid, n, band))
        T.writes(products[tuple(at)])
        with T.init():
            T.buffer_store(products, zero, at)
        with T.If(entry < end - start), T.Then():
            value = converted(values[(start + entry, lane, *term)], conv.accumulator_type)
            read = pixel(planes, laid, n, offsets[(start + entry, *term)], band, place)
            product = value * converted(read, conv.accumulator_type)
            T.buffer_store(products, products[tuple(at)] + product, at)
    with block("conv", points, blocks) as (*at, part):
        T.reads(products[(part, *at)])
        T.writes(sums[tuple(at)])
        with T.init():
            T.buffer_store(sums, zero, at)
        T.buffer_store(sums, sums[tuple(at)] + products[(part, *at)], at)
    return sums


def finish_outputs(
    planes: Planes,
    sums: tirx.Buffer,
    filters: tirx.Buffer,
    output: tirx.Buffer,
    tail: Tail,
    operands: Sequence[tirx.Buffer],
) -> None:
    """Write block ``output``: the tail, and each row's outputs at the places of its filters."""
    conv, (rows, height) = planes.conv, map(int, filters.shape)
    points = {"n": conv.n, "band": planes.bands, "row": rows, "filter": height}
    of_a_band = {"p": planes.band.rows, "q": planes.band.columns}
    with block("output", {**points, **of_a_band}) as (n, band, row, lane, p, q):
        at = (n, filters[row, lane], *planes.output(band, p, q))
        T.reads(sums[n, band, row, lane, 0 : planes.band.places], *map(whole, (filters, *operands)))
        T.writes(output[n, 0 : conv.k, at[2], at[3]])
        finished = tail.scalar(sums[n, band, row, lane, p * planes.band.pitch + q], at, operands)
        if rows * height == conv.k:
            T.buffer_store(output, finished, at)
        else:
            with T.If(filters[row, lane] < conv.k), T.Then():
                T.buffer_store(output, finished, at)
