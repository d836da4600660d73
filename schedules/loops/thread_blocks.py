"""Dense convolutions on a GPU: tiles of outputs a thread, from inputs and weights in shared memory."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass

import tvm
from tvm import tirx
from tvm.s_tir import Schedule
from tvm.s_tir.schedule import LoopRV, SBlockRV

from dlas.schedules.loops.gpu_threads import BUSY, FEWEST, MOST, USUAL, WARP, most_threads
from dlas.schedules.loops.transformations import output_block, stage
from dlas.schedules.loops.vectors import divisors
from dlas.stack import Conv, Decisions, Target

SUMS = 64
"""Most outputs of a thread: a quarter of its registers with 256 threads a block."""
SHARED_BYTES = 24_576
"""Largest part of a block's shared memory: two blocks, or more, share a processor's."""
FETCH = 8.0
"""Cost of an element's way from global into shared memory, in multiply-adds of a thread."""
WAIT = 32.0
"""Cost of waiting for all threads of a block, twice for each part of the channels, in multiply-adds."""
CHANNELS = 32
"""Most terms of a sum whose inputs are in shared memory at a time."""
POINTS = 64
"""Most points of a design space."""


@dataclass(frozen=True)
class BlockTile:
    """What a thread computes, and which threads form a block."""

    filters: int
    """Filters and rows of a thread's outputs; it computes one column, so that loads of neighbouring threads
    coalesce.
    """
    lines: int
    """Filters and rows of a thread's outputs; it computes one column, so that loads of neighbouring threads
    coalesce.
    """
    lanes: int
    """Threads of a block along filters, rows and columns."""
    rows: int
    """Threads of a block along filters, rows and columns."""
    columns: int
    """Threads of a block along filters, rows and columns."""
    channels: int
    """Channels, or rows of patches, that are in shared memory at a time."""

    @classmethod
    def of(cls, decisions: Decisions) -> BlockTile:
        """Return the tile that a point of :func:`block_tiles` describes."""
        return cls(**{name: int(value) for name, value in decisions.items()})

    @property
    def threads(self) -> int:
        """Threads of a block."""
        return self.lanes * self.rows * self.columns

    def elements(self, conv: Conv) -> tuple[int, int]:
        """Return how many inputs and weights are in shared memory."""
        height, width = (
            (outputs - 1) * stride + (taps - 1) * dilation + 1
            for outputs, stride, taps, dilation in zip(
                (self.rows * self.lines, self.columns),
                conv.strides,
                (conv.r, conv.s),
                conv.dilation,
                strict=True,
            )
        )
        return self.channels * height * width, self.filters * self.lanes * self.channels * conv.r * conv.s

    def cost(self, conv: Conv) -> float:
        """Return instructions a multiply-add, scaled up where threads are idle or too few."""
        sums = self.filters * self.lines
        terms = self.channels * conv.r * conv.s
        fetched = (FETCH * sum(self.elements(conv)) / self.threads + WAIT) / (sums * terms)
        idle = -(-self.threads // WARP) * WARP / self.threads
        at_work = conv.n * conv.k * conv.p * conv.q / sums
        return (1 + (self.filters + self.lines) / sums + fetched) * idle * max(1.0, BUSY / at_work)


def block_tiles(conv: Conv, target: Target, most_filters: int = SUMS) -> list[Decisions]:
    """Return tiles that fit the target, the best guess first; empty for convolutions in groups.

    A thread block reads the channels of one group only, and with many groups there are few to share.

    Parameters
    ----------
    most_filters : int
        Filters of a thread divide it.
    """
    if conv.groups > 1:
        return []
    limits = tvm.target.Target(dict(target.description)).attrs
    most = min(MOST, most_threads(target))
    shared = min(SHARED_BYTES, int(limits.get("max_shared_memory_per_block", SHARED_BYTES)))
    tiles = [tile for tile in _tiles(conv, most, most_filters) if 4 * sum(tile.elements(conv)) <= shared]
    worthwhile = [tile for tile in tiles if tile.threads >= FEWEST] or tiles
    worthwhile.sort(key=lambda tile: (round(tile.cost(conv), 3), abs(tile.threads - USUAL), tile.channels))
    return [asdict(tile) for tile in worthwhile[:POINTS]]


def _tiles(conv: Conv, most: int, most_filters: int) -> Iterator[BlockTile]:
    """Yield every tile that divides the loops over outputs and channels."""
    for columns, rows in itertools.product(divisors(conv.q, most), divisors(conv.p, most)):
        if columns * rows > most:
            continue
        for lines in divisors(conv.p // rows, 8):
            for filters in divisors(conv.k, SUMS // lines):
                if math.gcd(filters, most_filters) != filters or filters > 16:
                    continue
                for lanes in divisors(conv.k // filters, most // (columns * rows)):
                    for channels in divisors(conv.c, CHANNELS):
                        yield BlockTile(filters, lines, lanes, rows, columns, channels)


def compute_in_thread_blocks(schedule: Schedule, decisions: Decisions) -> None:
    """Accumulate a tile of outputs a thread, and apply the tail there.

    The sum is stage ``conv``; its first reduction axis runs over channels, or over rows of
    patches.  Its input is stage ``pad`` where it has one.  ``decisions`` are a point of
    :func:`block_tiles`.
    """
    tile = BlockTile.of(decisions)
    output, convolution = output_block(schedule), schedule.get_sblock("conv")
    if schedule.get(output).name_hint == "conv":
        output = schedule.cache_write(convolution, 0, "local")
    n, k, p, q = schedule.get_loops(output)[:4]
    k, lane, filters = schedule.split(k, [None, tile.lanes, tile.filters])
    p, row, line = schedule.split(p, [None, tile.rows, tile.lines])
    q, column = schedule.split(q, [None, tile.columns])
    schedule.reorder(n, k, p, q, lane, row, column, filters, line)
    schedule.compute_at(convolution, column, preserve_unit_loops=True)
    schedule.set_scope(convolution, 0, "local")
    schedule.bind(schedule.fuse(n, k, p, q), "blockIdx.x")
    for loop, axis in ((lane, "threadIdx.z"), (row, "threadIdx.y"), (column, "threadIdx.x")):
        schedule.bind(loop, axis)
    outer, own = _order(schedule, convolution, column, tile)
    for block in _inputs(schedule, convolution):
        schedule.compute_at(block, outer, preserve_unit_loops=True)
        _fetch(schedule, block, outer, tile)
    for loop in (*own, filters, line):
        schedule.unroll(loop)
    schedule.decompose_reduction(convolution, outer)


def _order(
    schedule: Schedule, convolution: SBlockRV, column: LoopRV, tile: BlockTile
) -> tuple[LoopRV, list[LoopRV]]:
    """Put a thread's outputs inside its terms; return the loop over parts of channels and the outputs'."""
    loops = schedule.get_loops(convolution)
    below = loops[_place(schedule, loops, column) + 1 :]
    kinds = [axis.iter_type for axis in schedule.get(convolution).iter_vars]
    reductions = sum(kind == tirx.IterVar.CommReduce for kind in kinds)
    own, (channel, *taps) = below[:-reductions], below[-reductions:]
    outer, channel = schedule.split(channel, [None, tile.channels])
    schedule.reorder(outer, channel, *taps, *own)
    return outer, own


def _inputs(schedule: Schedule, convolution: SBlockRV) -> list[SBlockRV]:
    """Return the blocks that write the sum's inputs into shared memory: its padding, or copies."""
    padding = stage(schedule, "pad")
    written = schedule.get(padding).writes[0].source if padding is not None else None
    reads = [region.source for region in schedule.get(convolution).reads]
    blocks = []
    for number, source in enumerate(reads):
        if written is not None and source.same_as(written):
            schedule.set_scope(padding, 0, "shared")
            blocks.append(padding)
        elif source.scope() == "global":
            blocks.append(schedule.cache_read(convolution, number, "shared"))
    return blocks


def _fetch(schedule: Schedule, block: SBlockRV, outer: LoopRV, tile: BlockTile) -> None:
    """Let all threads of a block write elements of shared memory, neighbours beside each other."""
    loops = schedule.get_loops(block)
    elements = schedule.fuse(*loops[_place(schedule, loops, outer) + 1 :])
    _, lane, row, column = schedule.split(elements, [None, tile.lanes, tile.rows, tile.columns])
    for loop, axis in ((lane, "threadIdx.z"), (row, "threadIdx.y"), (column, "threadIdx.x")):
        schedule.bind(loop, axis)


def _place(schedule: Schedule, loops: Sequence[LoopRV], loop: LoopRV) -> int:
    """Return where a loop is among others."""
    wanted = schedule.get(loop)
    return next(number for number, each in enumerate(loops) if schedule.get(each).same_as(wanted))
