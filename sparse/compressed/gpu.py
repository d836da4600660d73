"""Sparse convolution on GPUs: a thread has outputs of its own, and the loop over a row's entries inside it.

No sum is shared among threads, and no loop of unknown length is spread over them.
Schedules know a kernel by its blocks: ``pad`` lays the input out, ``products`` sums a block
of channels and ``conv`` all of them, and ``output`` [n, bands, rows, filters of a row, p, q]
finishes a band's outputs.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass

import tvm
import tvm_ffi
from tvm import s_tir, tirx
from tvm.ir import Expr
from tvm.ir.transform import Pass, PassContext
from tvm.s_tir import Schedule
from tvm.s_tir.schedule import LoopRV, SBlockRV
from tvm.script.ir_builder import IRBuilder
from tvm.script.ir_builder import tirx as T

from dlas.schedules.loops.transformations import THREADS_PER_BLOCK, bind, stage
from dlas.schedules.loops.vectors import divisors
from dlas.sparse.compressed.planes import Planes
from dlas.stack import Decisions, Target

WARP = 32
"""Threads that run in step: they should belong to one row, since rows differ in length."""
WIDTHS = (1, 2, 4, 8)
"""Warps that lie side by side along the outputs of a filter, where there are so many outputs."""
FEWEST, USUAL, MOST = 64, 256, 512
"""Threads of a block that are worth having, where there is work for so many."""
SUMS = 32
"""Outputs of a thread, at most: a quarter of the registers that it could have with 512 threads a block."""
PLACES = 8
"""Outputs of one filter in a thread, at most."""
BUSY = 2**16
"""Threads at work that hide how long memory takes to answer, on a large GPU."""
OVERHEAD = 3
"""Instructions for each entry beside those for values, inputs and products: its offset and the loop."""
POINTS = 64
"""Points of a design space that are worth trying."""


# ---------------------------------------------------------------- design space


@dataclass(frozen=True)
class ThreadTile:
    """What a thread computes, and which threads make a block.

    Parameters
    ----------
    images, lines, filters : int
        Outputs of a thread: so many images, rows of the output and filters of a row of
        entries.  Threads of neighbouring columns read neighbouring inputs, so a thread has
        one column only.
    rows : int
        Rows of entries that a block of threads computes side by side, from the same inputs.
    threads : int
        Along the outputs of a filter.
    """

    images: int
    lines: int
    filters: int
    rows: int
    threads: int

    def block(self, height: int) -> int:
        """Return the threads of a block, where a row of entries has so many filters."""
        return self.threads * self.rows * (height // self.filters)

    def cost(self, extents: Sequence[int]) -> float:
        """Return instructions for each product, more where threads are idle or too few."""
        n, bands, rows, height, p, q = extents
        places, run = self.images * self.lines, p // self.lines * q
        an_entry = OVERHEAD + self.filters + places + self.filters * places
        idle = -(-run // self.threads) * self.threads / run
        at_work = n * bands * rows * height * p * q / (places * self.filters)
        return an_entry / (places * self.filters) * idle * max(1.0, BUSY / at_work)


def thread_tiles(extents: Sequence[int], target: Target) -> list[Decisions]:
    """Return tiles that fit the target, the best guess first.

    Parameters
    ----------
    extents : sequence of int
        Of the loops of ``output``: n, bands, rows, filters of a row, p, q.
    target : Target
    """
    height = extents[3]
    tiles = list(_tiles(extents, most_threads(target)))
    worthwhile = [tile for tile in tiles if FEWEST <= tile.block(height) <= MOST] or tiles
    best = sorted(worthwhile, key=lambda tile: (tile.cost(extents), abs(tile.block(height) - USUAL)))
    return [asdict(tile) for tile in best[:POINTS]]


def most_threads(target: Target) -> int:
    """Return how many threads a block of a GPU may have."""
    limits = tvm.target.Target(dict(target.description)).attrs
    return int(limits.get("max_threads_per_block", limits["max_num_threads"]))


def _tiles(extents: Sequence[int], most: int) -> Iterator[ThreadTile]:
    """Yield every tile that divides the loops of ``output``, with blocks of so many threads at most."""
    n, _, rows, height, p, q = extents
    for images, lines in itertools.product(divisors(n, PLACES), divisors(p, PLACES)):
        run = p // lines * q
        warps = {min(each, -(-run // WARP)) for each in WIDTHS}
        for filters, wide in itertools.product(divisors(height, height), sorted(warps)):
            lanes = wide * WARP * (height // filters)
            if images * lines <= PLACES and images * lines * filters <= SUMS and lanes <= most:
                for side in divisors(rows, most // lanes):
                    yield ThreadTile(images, lines, filters, side, wide * WARP)


# ---------------------------------------------------------------- loops


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


# ---------------------------------------------------------------- the input


def _leave_padding(schedule: Schedule) -> None:
    """Make one loop of those around ``pad``, for :func:`pad_by_threads` to replace."""
    padding = stage(schedule, "pad")
    if padding is not None:
        schedule.fuse(*schedule.get_loops(padding))


def pad_by_threads(planes: Planes) -> Pass:
    """Return the pass that lays the input out by a thread for each number.

    Block ``pad`` fills and copies whole channels, in loops of its own: right for a CPU,
    while threads of a GPU have to write neighbouring numbers.
    """

    def by_numbers(loop: tirx.For) -> tirx.Stmt:
        inside = loop.body
        if not isinstance(inside, s_tir.SBlockRealize) or inside.block.name_hint != "pad":
            return loop
        return _write_numbers(planes, inside.block.reads[0].source, inside.block.writes[0].source)

    @tirx.transform.prim_func_pass(opt_level=0)
    def replace(function: tirx.PrimFunc, module: tvm.IRModule, context: PassContext) -> tirx.PrimFunc:
        return function.with_body(tvm_ffi.structural_map(function.body, [(tirx.For, by_numbers)]))

    return replace


def _write_numbers(planes: Planes, x: tirx.Buffer, laid: tirx.Buffer) -> tirx.Stmt:
    """Return the loops that write each number of ``laid`` by a thread of its own."""
    conv = planes.conv
    slab_size = conv.c * planes.channel
    slabs, numbers = conv.n * planes.slabs, conv.n * planes.slabs * slab_size
    groups = -(-numbers // THREADS_PER_BLOCK)
    with IRBuilder() as builder, T.prim_func(s_tir=True):
        T.func_name("pad")
        with (
            T.thread_binding(0, groups, thread="blockIdx.x") as group,
            T.thread_binding(0, THREADS_PER_BLOCK, thread="threadIdx.x") as thread,
            T.sblock("pad"),
        ):
            at = group * THREADS_PER_BLOCK + thread
            T.where(at < numbers)
            own, place = T.axis.spatial(slabs, at // slab_size), T.axis.spatial(slab_size, at % slab_size)
            n, slab = own // planes.slabs, own % planes.slabs
            T.reads(x[n, 0 : conv.c, 0 : conv.h, 0 : conv.w])
            T.writes(laid[n, slab, place])
            T.buffer_store(laid, number(planes, x, n, slab, place), (n, slab, place))
    return builder.get().body.block.body


def number(planes: Planes, x: tirx.Buffer, n: Expr, slab: Expr, place: Expr) -> Expr:
    """Return what lies at a place of a slab: a number of the input, or the border.

    Where nothing is read it is either, so that nothing else has to be told apart.
    """
    conv = planes.conv
    within = place % planes.plane
    i, j = within // planes.band.pitch, within % planes.band.pitch
    first = planes.output(slab, i, j) if planes.slabs > 1 else (i, j)
    phase = place % planes.channel // planes.plane
    phases = phase // planes.phases[1], phase % planes.phases[1]
    row, column = (
        first[axis] * conv.strides[axis] + planes.begin(axis, phases[axis]) - conv.padding[axis]
        for axis in (0, 1)
    )
    inside = tirx.all(row >= 0, row < conv.h, column >= 0, column < conv.w)
    border = tirx.const(conv.padding_value, conv.input_type)
    return tirx.if_then_else(inside, x[n, place // planes.channel, row, column], border)
