"""Sparse convolution on GPUs: a thread has outputs of its own, and the loop over a row's entries inside it.

No sum is shared among threads, and no loop of unknown length is spread over them.
Schedules know a kernel by its blocks: ``pad`` lays the input out, ``products`` sums a block
of channels and ``conv`` all of them, and ``output`` [n, bands, rows, filters of a row, p, q]
finishes a band's outputs.
"""

from __future__ import annotations

from tvm.s_tir import Schedule
from tvm.s_tir.schedule import LoopRV, SBlockRV

from dlas.schedules.loops.transformations import bind, stage
from dlas.sparse.compressed.thread_tiles import ThreadTile
from dlas.stack import Decisions


def give_outputs_threads(schedule: Schedule) -> None:
    """Give every output a thread, and nothing else."""
    output = _read_one_sum(schedule)
    bind(schedule, output, 6)
    _sum_inside(schedule, schedule.get_loops(output)[-1])
    _leave_padding(schedule)


def compute_on_threads(schedule: Schedule, decisions: Decisions) -> None:
    """Give every thread a tile of outputs, whose sums stay in its registers.

    ``decisions`` are a point of :func:`thread_tiles`.  Tiles are virtual threads: an entry's
    value and offset are read once for all outputs of a thread.
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
    """Let ``output`` say that it reads one sum, where it claims a whole band for the sake of vectors."""
    output, sums = schedule.get_sblock("output"), schedule.get(schedule.get_sblock("conv")).writes[0].source
    number = next(i for i, read in enumerate(schedule.get(output).reads) if read.source.same_as(sums))
    # What is inlined is read where it is, and no more of it.
    schedule.compute_inline(schedule.reindex(output, ("read", number)))
    return output


def _sum_inside(schedule: Schedule, loop: LoopRV) -> None:
    """Compute sums in registers inside a loop of ``output``.

    Last of all: TVM refuses to bind loops over a sum whose place is no plain sum of theirs.
    """
    sums, products = schedule.get_sblock("conv"), schedule.get_sblock("products")
    schedule.compute_at(sums, loop, preserve_unit_loops=True)
    *_, lane, place, part = schedule.get_loops(sums)
    schedule.reorder(part, lane, place)
    schedule.compute_at(products, part, preserve_unit_loops=True)
    *_, own_lane, own_place, entry = schedule.get_loops(products)
    schedule.reorder(entry, own_lane, own_place)
    for each in (sums, products):
        schedule.set_scope(each, 0, "local")
    for each in (lane, own_lane):
        schedule.unroll(each)


def _leave_padding(schedule: Schedule) -> None:
    """Make one loop of those around ``pad``, for :func:`pad_by_threads` to replace."""
    padding = stage(schedule, "pad")
    if padding is not None:
        schedule.fuse(*schedule.get_loops(padding))
