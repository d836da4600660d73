"""Sparse convolution on GPUs: each thread computes its own outputs and loops over a row's entries.

No reduction crosses threads, and no loop of unknown length is bound to them.
Schedules find a kernel's stages by the names of blocks: ``pad`` writes the padded input,
``products`` sums a block of channels and ``conv`` all of them, and ``output``
[n, bands, rows, filters of a row, p, q] applies the tail.
"""

from __future__ import annotations

from tvm.s_tir import Schedule
from tvm.s_tir.schedule import LoopRV, SBlockRV

from dlas.schedules.loops.transformations import bind, stage
from dlas.sparse.compressed.thread_tiles import ThreadTile
from dlas.stack import Decisions


def give_outputs_threads(schedule: Schedule) -> None:
    """Compute each output by its own thread."""
    output = _read_one_sum(schedule)
    bind(schedule, output, 6)
    _sum_inside(schedule, schedule.get_loops(output)[-1])
    _leave_padding(schedule)


def compute_on_threads(schedule: Schedule, decisions: Decisions) -> None:
    """Compute a tile of outputs a thread, with accumulators in its registers.

    ``decisions`` are a point of :func:`thread_tiles`.  Outputs of a tile are bound to virtual threads, so
    that an entry's value and offset are read once for all outputs of a thread.
    """
    tile = ThreadTile(**{name: int(value) for name, value in decisions.items()})
    output = _read_one_sum(schedule)
    n, band, row, lane, p, q = schedule.get_loops(output)
    n, image = schedule.split(n, [None, tile.images])
    share, row = schedule.split(row, [None, tile.rows])
    lanes, lane = schedule.split(lane, [None, tile.filters])
    line, p = schedule.split(p, [tile.lines, None])
    schedule.reorder(n, band, share, row, lanes, image, line, p, q, lane)
    part, thread = schedule.split(schedule.fuse(p, q), [None, tile.threads])
    for loop, axis in (
        (schedule.fuse(n, band, share), "blockIdx.x"),
        (part, "blockIdx.y"),
        (schedule.fuse(row, lanes), "threadIdx.y"),
        (schedule.fuse(image, line), "vthread.x"),
        (thread, "threadIdx.x"),
    ):
        schedule.bind(loop, axis)
    _sum_inside(schedule, thread)
    schedule.unroll(lane)
    _leave_padding(schedule)


def _read_one_sum(schedule: Schedule) -> SBlockRV:
    """Narrow the region that ``output`` declares to read from a whole band to one sum."""
    output, sums = schedule.get_sblock("output"), schedule.get(schedule.get_sblock("conv")).writes[0].source
    number = next(i for i, read in enumerate(schedule.get(output).reads) if read.source.same_as(sums))
    # Inlining a reindexed read leaves the one element as the declared region.
    schedule.compute_inline(schedule.reindex(output, ("read", number)))
    return output


def _sum_inside(schedule: Schedule, loop: LoopRV) -> None:
    """Accumulate in registers inside a loop of ``output``.

    To be called last: TVM refuses to bind the outer loops afterwards, since a sum's index is no
    affine function of theirs.
    """
    sums, products = schedule.get_sblock("conv"), schedule.get_sblock("products")
    schedule.compute_at(sums, loop, preserve_unit_loops=True)
    *_, lane, place, part = schedule.get_loops(sums)
    schedule.reorder(part, lane, place)
    schedule.compute_at(products, part, preserve_unit_loops=True)
    *_, own_lane, own_place, entry = schedule.get_loops(products)
    schedule.reorder(entry, own_lane, own_place)
    for block in (sums, products):
        schedule.set_scope(block, 0, "local")
    for loop_over_filters in (lane, own_lane):
        schedule.unroll(loop_over_filters)


def _leave_padding(schedule: Schedule) -> None:
    """Fuse the loops around ``pad`` into one, which :func:`pad_by_threads` replaces."""
    padding = stage(schedule, "pad")
    if padding is not None:
        schedule.fuse(*schedule.get_loops(padding))
