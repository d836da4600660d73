"""Loops of a sparse convolution on a CPU: a band of outputs in tiles of vectors."""

from __future__ import annotations

import math

from tvm import tirx
from tvm.s_tir import Schedule
from tvm.s_tir.schedule import LoopRV, SBlockRV

from dlas.schedules.loops.registers import unroll_vectors
from dlas.sparse.compressed.dots import mark_dot_products
from dlas.sparse.compressed.padding import (
    pad_band_at,
    parallelise_padding,
)
from dlas.stack import Decisions

SMALLEST_PART = 4
"""Elements of the smallest vector."""


def compute_bands(schedule: Schedule, lanes: int, decisions: Decisions) -> None:
    """Compute a band of the output for some of the rows a task, in tiles of vectors.

    A task sums all its rows over one block of channels before the next block, so that the
    block's inputs stay in the cache.
    """
    output, sums, products = (schedule.get_sblock(name) for name in ("output", "conv", "products"))
    n, band, row, _, _, column = schedule.get_loops(output)
    share, row = schedule.split(row, [None, int(decisions["rows"])])
    several = int(schedule.get(schedule.get_loops(sums)[-1]).extent) > 1
    schedule.compute_at(sums, share if several else row, preserve_unit_loops=True)
    *_, each, lane, place, part = schedule.get_loops(sums)
    tile, vector, element = schedule.split(place, [None, int(decisions["vectors"]), lanes])
    schedule.reorder(part, each, tile, lane, vector, element)
    schedule.compute_at(products, tile, preserve_unit_loops=True)
    schedule.set_scope(products, 0, "local")
    entry, own_element = _entry_by_entry(schedule, products, lanes)
    # A task that computes all of a band also pads its input, which is then in the cache.
    laid = schedule.get(share).extent == 1 and pad_band_at(schedule, share)
    schedule.parallel(schedule.fuse(n, band, share))
    unroll_vectors(schedule, [lane, vector, element])
    for sum_of, first in [(products, entry)] + [(sums, part)] * several:
        start = schedule.decompose_reduction(sum_of, first)
        unroll_vectors(schedule, schedule.get_loops(start)[-3:])
    if own_element is not None:
        mark_dot_products(schedule, own_element)
    _vectorise_row(schedule, column, lanes)
    if not laid:
        parallelise_padding(schedule)


def reduction_loops(schedule: Schedule, block: SBlockRV) -> list[LoopRV]:
    """Return the loops of a block's reduction, which are its innermost."""
    axes = schedule.get(block).iter_vars
    return list(schedule.get_loops(block)[-sum(axis.iter_type == tirx.IterVar.CommReduce for axis in axes) :])


def _entry_by_entry(schedule: Schedule, products: SBlockRV, lanes: int) -> tuple[LoopRV, LoopRV | None]:
    """Add a row's entries to all of a tile, one after the other, in vectors.

    Returns
    -------
    tuple
        The loop over entries; and that over lanes where several entries are added by a dot product.
    """
    entry, *term = reduction_loops(schedule, products)
    lane, place = schedule.get_loops(products)[-3 - len(term) : -1 - len(term)]
    vector, element = schedule.split(place, [None, lanes])
    if not term:
        schedule.reorder(entry, lane, vector, element)
        unroll_vectors(schedule, [lane, vector, element])
        return entry, None
    schedule.reorder(entry, vector, lane, element, *term)  # a block's filters share what is put in order
    schedule.unroll(vector)
    schedule.unroll(lane)
    return entry, element


def _vectorise_row(schedule: Schedule, column: LoopRV, lanes: int) -> None:
    """Store a row of the output in vectors that divide both the row and the accumulators.

    LLVM would assemble a row stored as a single vector element by element if a band's
    accumulators are in registers.
    """
    columns = int(schedule.get(column).extent)
    part = math.gcd(columns, lanes)
    if SMALLEST_PART <= part < columns:
        _, column = schedule.split(column, [None, part])
    schedule.vectorize(column)
