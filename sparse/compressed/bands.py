"""Loops of a sparse convolution on a CPU: a band of outputs in tiles of vectors."""

from __future__ import annotations

import math

from tvm.s_tir import Schedule
from tvm.s_tir.schedule import LoopRV

from dlas.schedules.loops.registers import unroll_vectors
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
    *_, own_lane, own_place, entry = schedule.get_loops(products)
    own_vector, own_element = schedule.split(own_place, [None, lanes])
    schedule.reorder(entry, own_lane, own_vector, own_element)
    # A task that computes all of a band also pads its input, which is then in the cache.
    laid = schedule.get(share).extent == 1 and pad_band_at(schedule, share)
    schedule.parallel(schedule.fuse(n, band, share))
    unroll_vectors(schedule, [lane, vector, element])
    unroll_vectors(schedule, [own_lane, own_vector, own_element])
    for sum_of, first in [(products, entry)] + [(sums, part)] * several:
        start = schedule.decompose_reduction(sum_of, first)
        unroll_vectors(schedule, schedule.get_loops(start)[-3:])
    _vectorise_row(schedule, column, lanes)
    if not laid:
        parallelise_padding(schedule)


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
