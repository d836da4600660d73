"""The padded input laid out flat, so that a weight is one distance from every output to its input.

A channel is a plane, its rows one after the other.  With a stride it is several planes,
a phase each: a stride of 2 reads even columns from one and odd columns from the
other.  An output's place, counted with the same number of columns a row, plus a
weight's offset is where its input lies, whatever the stride, the dilation, the padding
and the group; and neighbours of the one are neighbours of the other.
"""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import numpy.typing as npt
from tvm import tirx
from tvm.ir import Expr, TensorRegion
from tvm.s_tir import Schedule
from tvm.s_tir.schedule import LoopRV
from tvm.script.ir_builder import tirx as T

from dlas.schedules.loops.transformations import stage
from dlas.schedules.loops.vectors import divisors
from dlas.sparse.compressed.blocks import block, scratch, whole
from dlas.stack import Conv

Indices = npt.NDArray[np.int64]
WIDEST = 16
"""Numbers of 32 bits in the widest vector there is."""
COPY = 1.2
"""What it costs to lay an input without gaps out anew, because bands have a rest to read beyond its end."""
LONGEST = 30
"""Vectors of a band of several rows, at most."""
LONG, LONG_FROM = 1.1, 16
"""What it costs that a band has more vectors than these: its inputs do not stay in a cache for long."""
FEWEST = 14
"""Vectors of sums that fit in the registers of the processors that have fewest."""


@dataclass(frozen=True)
class Band:
    """Outputs that are computed together: rows with the gaps between them, cut into vectors.

    Parameters
    ----------
    rows, columns : int
        Of the output.
    pitch : int
        From one row to the next.
    vectors : int
        Vectors of 16, a whole number of tiles.
    """

    rows: int
    columns: int
    pitch: int
    vectors: int

    @property
    def places(self) -> int:
        """Outputs, the gaps between rows, and the rest of the last tile."""
        return self.vectors * WIDEST

    @property
    def step(self) -> int:
        """Places from the first row to the one below the last."""
        return self.rows * self.pitch


@dataclass(frozen=True)
class Planes:
    """Where the inputs of a convolution's outputs lie.

    Outputs are computed in bands.

    Parameters
    ----------
    conv : Conv
    tile : int
        Vectors of 16 that are computed together, at most.
    """

    conv: Conv
    tile: int

    apart: ClassVar[bool] = False
    """Whether what a band reads lies by itself, written out once more where bands overlap."""

    # ------------------------------------------------------------ the output

    @property
    def band(self) -> Band:
        """The outputs that are computed together."""
        return best_band(self)

    def shapes(self) -> Iterator[tuple[int, int, int]]:
        """Yield rows, columns and pitch of the bands that there could be."""
        for rows in divisors(self.conv.p, self.conv.p):
            yield rows, self.conv.q, self.conv.q + self.halo(1)

    def price(self, band: Band) -> float:
        """Return what a vector of a band costs, beside those of others."""
        copied = self.plain and not self._fits(band)
        return (COPY if copied else 1) * (LONG if band.vectors > LONG_FROM else 1)

    @property
    def across(self) -> tuple[int, int]:
        """Bands of the output along height and width."""
        return self.conv.p // self.band.rows, self.conv.q // self.band.columns

    @property
    def bands(self) -> int:
        """Bands of the output."""
        return math.prod(self.across)

    def output(self, band: Expr | int, p: Expr | int, q: Expr | int) -> tuple[Expr | int, Expr | int]:
        """Return row and column of the output of those of a band."""
        high, wide = self._along(band)
        return high * self.band.rows + p, wide * self.band.columns + q

    def _along(self, band: Expr | int) -> tuple[Expr | int, Expr | int]:
        """Return which band it is along height and width."""
        wide = self.across[1]
        return (band, 0) if wide == 1 else (band // wide, band % wide)

    # ------------------------------------------------------------ the input

    def steps(self, axis: int) -> tuple[Indices, Indices]:
        """Return how many rows (axis 0) or columns (axis 1) further each weight reads, and in which phase."""
        weights, conv = (self.conv.r, self.conv.s)[axis], self.conv
        further, phase = np.divmod(np.arange(weights) * conv.dilation[axis], conv.strides[axis])
        return further, phase

    def begin(self, axis: int, phase: int) -> int:
        """Return the row (axis 0) or column (axis 1) of the padded input that is a phase's first."""
        return phase

    def halo(self, axis: int) -> int:
        """Return how many rows (axis 0) or columns (axis 1) more than the output a phase has."""
        return int(self.steps(axis)[0].max())

    @property
    def phases(self) -> tuple[int, int]:
        """Phases along height and width, up to the last that a weight reads."""
        row_phases, column_phases = (self.steps(axis)[1] for axis in (0, 1))
        return 1 + int(row_phases.max()), 1 + int(column_phases.max())

    @property
    def plain(self) -> bool:
        """Whether an output reads its own place of each channel and nothing else."""
        conv = self.conv
        return (conv.r, conv.s, conv.strides) == (1, 1, (1, 1)) and not any(conv.padding)

    @property
    def as_given(self) -> bool:
        """Whether the input lies like this already, with nothing to be read beyond its end."""
        return self.plain and self._fits(self.band)

    def _fits(self, band: Band) -> bool:
        """Whether a band has neither gaps nor a rest."""
        return band.pitch == band.columns == self.conv.w and band.places == band.step

    @property
    def slabs(self) -> int:
        """Parts of the input that are laid out each by itself."""
        return self.bands if self.apart and not self.as_given else 1

    @property
    def rows(self) -> int:
        """Rows of a phase."""
        return (self.conv.p if self.slabs == 1 else self.band.rows) + self.halo(0)

    @property
    def columns(self) -> int:
        """Columns of a phase, without a gap behind them."""
        return (self.conv.q if self.slabs == 1 else self.band.columns) + self.halo(1)

    @property
    def plane(self) -> int:
        """Numbers of a phase; a multiple of a vector, so that planes start where vectors do."""
        return -(-self.rows * self.band.pitch // WIDEST) * WIDEST

    @property
    def channel(self) -> int:
        """Numbers of a channel: all of its phases."""
        return math.prod(self.phases) * self.plane

    @property
    def under_a_band(self) -> int:
        """Numbers of a channel that a band's outputs read."""
        return math.prod(self.phases) * (self.band.rows + self.halo(0)) * self.band.pitch

    def offsets(self) -> npt.NDArray[np.int32]:
        """Return how far it is from an output's place to its input, for each weight [c, r, s]."""
        (rows, row_phases), (columns, column_phases) = self.steps(0), self.steps(1)
        phases = row_phases[:, None] * self.phases[1] + column_phases
        within = phases * self.plane + rows[:, None] * self.band.pitch + columns
        return (np.arange(self.conv.c)[:, None, None] * self.channel + within).astype(np.int32)

    # ------------------------------------------------------------ the kernel

    def lay(self, x: tirx.Buffer) -> tirx.Buffer:
        """Write the block ``pad`` of a kernel; return the planes [n, slabs, ...], or ``x`` as it is."""
        conv, band = self.conv, self.band
        if self.as_given:
            return x
        beyond = max(band.places - band.step + self.halo(1), 0)  # read for places that hold no output
        planes = scratch("planes", (conv.n, self.slabs, conv.c * self.channel + beyond), conv.input_type)
        with block("pad", {"n": conv.n, "slab": self.slabs, "c": conv.c}) as (n, slab, c):
            first = c * self.channel
            T.reads(x[n, c, 0 : conv.h, 0 : conv.w])
            T.writes(planes[n, slab, first : first + self.channel])
            for number, phase in enumerate(np.ndindex(self.phases)):
                self._lay_phase(x, planes, (n, slab, c), first + number * self.plane, phase)
        return planes

    def _lay_phase(
        self, x: tirx.Buffer, planes: tirx.Buffer, at: tuple[Expr, ...], first: Expr, phase: tuple[int, ...]
    ) -> None:
        """Write one phase, whose plane begins at ``first``: the image's part and the border around it.

        Which is which is known in advance, so no number is tested and all are plain copies.
        """
        conv, band, (n, slab, c) = self.conv, self.band, at
        own = self._along(slab) if self.slabs > 1 else (0, 0)
        row, column = (
            own[axis] * (band.rows, band.columns)[axis] * conv.strides[axis]
            + (self.begin(axis, phase[axis]) - conv.padding[axis])
            for axis in (0, 1)
        )

        def border(begin: Expr, count: int) -> None:
            if count:
                with T.serial(count) as place:
                    value = tirx.const(conv.padding_value, conv.input_type)
                    T.buffer_store(planes, value, (n, slab, begin + place))

        for (high, (top, bottom)), (wide, (left, right)) in itertools.product(
            self._insides(0, phase[0]), self._insides(1, phase[1])
        ):
            with _only(own[0], high), _only(own[1], wide):
                border(first, top * band.pitch)
                with T.serial(bottom - top) as i:
                    line = first + (top + i) * band.pitch
                    border(line, left)
                    with T.serial(right - left) as j:
                        read = (row + (top + i) * conv.strides[0], column + (left + j) * conv.strides[1])
                        T.buffer_store(planes, x[(n, c, *read)], (n, slab, line + left + j))
                    border(line + right, band.pitch - right)
                border(first + bottom * band.pitch, self.plane - bottom * band.pitch)

    def _insides(self, axis: int, phase: int) -> list[tuple[range | None, tuple[int, int]]]:
        """Return from and to which row (axis 0) or column (axis 1) a phase holds the image.

        Slabs at the edges differ: what holds for which of them, or None for all.
        """
        stride, before = self.conv.strides[axis], self.conv.padding[axis] - self.begin(axis, phase)
        image, there = ((self.conv.h, self.rows), (self.conv.w, self.columns))[axis]
        extent = (self.band.rows, self.band.columns)[axis]

        def inside(slab: int) -> tuple[int, int]:
            first, last = (-(-edge // stride) - slab * extent for edge in (before, before + image))
            return min(max(first, 0), there), min(max(last, 0), there)

        count = self.across[axis] if self.slabs > 1 else 1
        found = [(list(same), each) for each, same in itertools.groupby(range(count), inside)]
        return [(range(same[0], same[-1] + 1) if len(found) > 1 else None, each) for same, each in found]

    def written(self, planes: tirx.Buffer, n: Expr | int, band: Expr | int) -> TensorRegion:
        """Return the region of the planes that a band of an image reads and that has a value."""
        if self.as_given:
            return whole(planes)
        return planes[n, band if self.slabs > 1 else 0, 0 : self.conv.c * self.channel]

    def pixel(
        self, planes: tirx.Buffer, n: Expr | int, offset: Expr | int, band: Expr | int, place: Expr | int
    ) -> Expr:
        """Return the input that a weight's offset leads to from a place of a band."""
        if self.slabs > 1:
            return planes[n, band, offset + place]
        # An input as it is given has axes of its own; its numbers still follow each other.
        return planes[(n, *[0] * (len(planes.shape) - 2), offset + band * self.band.step + place)]


@contextmanager
def _only(number: Expr | int, which: range | None) -> Iterator[None]:
    """Do what follows for a range of numbers alone."""
    if which is None:
        yield
        return
    with T.If(tirx.all(number >= which.start, number < which.stop)), T.Then():
        yield


@functools.cache
def best_band(planes: Planes) -> Band:
    """Return the band that costs least.

    Gaps between rows and the rest of the last tile are computed for nothing, and in every
    tile each nonzero costs two instructions beside its products, for value and place.
    """
    # A tile of a large prime number of vectors has no parts for processors with fewer registers.
    most = planes.tile
    tiles = [tile for tile in range(1, most + 1) if divisors(tile, FEWEST)[-1] > min(tile, 4) - 1]
    choices = []
    for rows, columns, pitch in planes.shapes():
        run = (rows - 1) * pitch + columns
        if rows == 1 or run <= LONGEST * WIDEST:
            whole_tiles = [(-(-run // (WIDEST * tile)) * tile, tile) for tile in tiles]
            choices += [(Band(rows, columns, pitch, vectors), tile) for vectors, tile in whole_tiles]

    def cost(choice: tuple[Band, int]) -> float:
        band, tile = choice
        return planes.price(band) * band.vectors * (1 + 2 / tile) / (band.rows * band.columns)

    return min(choices, key=cost)[0]


def spread_planes(schedule: Schedule) -> None:
    """Share the channels of the padded input, slab by slab, among threads."""
    padding = stage(schedule, "pad")
    if padding is not None:
        schedule.parallel(schedule.fuse(*schedule.get_loops(padding)))


def lay_at(schedule: Schedule, loop: LoopRV) -> bool:
    """Lay each slab out where its band is computed, if each has its own; return whether that is so."""
    padding = stage(schedule, "pad")
    if padding is None or schedule.get(schedule.get_loops(padding)[1]).extent == 1:
        return False
    schedule.compute_at(padding, loop, preserve_unit_loops=True)
    return True
