"""Flat layout of the padded input, in which a weight has one constant offset from output to input.

A channel is a plane, its rows one after the other.  With a stride it is several planes,
called phases: with a stride of 2, even columns are in one and odd columns in another.
The index of an output (with the same row pitch) plus a weight's offset is the index of its
input, whatever the stride, dilation, padding and group, and neighbouring outputs read
neighbouring inputs, so that vectors can be loaded.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import numpy.typing as npt
from tvm.ir import Expr

from dlas.schedules.loops.vectors import divisors
from dlas.stack import Conv
from dlas.stack.array import Int64Array

WIDEST = 16
"""Elements of 32 bits in the widest vector."""
COPY = 1.2
"""Relative cost of copying an input that would need no padding, since the last tile reads past its end."""
LONGEST = 30
"""Most vectors of a band of several rows."""
LONG, LONG_FROM = 1.1, 16
"""Relative cost of a band with more vectors than these, whose inputs leave the cache."""
FEWEST = 14
"""Vector accumulators that fit in the registers of the processors with fewest."""


@dataclass(frozen=True)
class Band:
    """Outputs that are computed together: rows with the gaps between them, cut into vectors."""

    rows: int
    """Of the output."""
    columns: int
    """Of the output."""
    pitch: int
    """Distance from one row to the next."""
    vectors: int
    """Vectors of 16, a whole number of tiles."""

    @property
    def places(self) -> int:
        """Outputs, the gaps between rows, and the padding of the last tile."""
        return self.vectors * WIDEST

    @property
    def step(self) -> int:
        """Distance from one band to the next."""
        return self.rows * self.pitch


@dataclass(frozen=True)
class Planes:
    """Where the inputs of a convolution's outputs lie.

    Outputs are computed in bands.
    """

    conv: Conv
    tile: int
    """Most vectors of 16 that are computed together."""

    apart: ClassVar[bool] = False
    """Whether each band has a copy of its inputs, so that overlaps are copied twice."""

    @property
    def band(self) -> Band:
        """The outputs that are computed together."""
        return best_band(self)

    def shapes(self) -> Iterator[tuple[int, int, int]]:
        """Yield rows, columns and pitch of the possible bands."""
        for rows in divisors(self.conv.p, self.conv.p):
            yield rows, self.conv.q, self.conv.q + self.halo(1)

    def price(self, band: Band) -> float:
        """Return the relative cost of a vector of a band."""
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
        """Return row and column of the output for row ``p`` and column ``q`` of a band."""
        high, wide = self.along(band)
        return high * self.band.rows + p, wide * self.band.columns + q

    def along(self, band: Expr | int) -> tuple[Expr | int, Expr | int]:
        """Return a band's numbers along height and width."""
        wide = self.across[1]
        return (band, 0) if wide == 1 else (band // wide, band % wide)

    def steps(self, axis: int) -> tuple[Int64Array, Int64Array]:
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
        """Whether output (p, q) reads input (p, q) alone: a 1x1 kernel without stride or padding."""
        conv = self.conv
        return (conv.r, conv.s, conv.strides) == (1, 1, (1, 1)) and not any(conv.padding)

    @property
    def as_given(self) -> bool:
        """Whether the kernel can read the unpadded input in place."""
        return self.plain and self._fits(self.band)

    def _fits(self, band: Band) -> bool:
        """Whether a band has neither gaps nor padding of its last tile."""
        return band.pitch == band.columns == self.conv.w and band.places == band.step

    @property
    def slabs(self) -> int:
        """Copies of the padded input: one for each band if ``apart``, else one."""
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
        """Elements of a phase; a multiple of a vector, so that planes are aligned."""
        return -(-self.rows * self.band.pitch // WIDEST) * WIDEST

    @property
    def channel(self) -> int:
        """Elements of a channel: all of its phases."""
        return math.prod(self.phases) * self.plane

    @property
    def under_a_band(self) -> int:
        """Elements of a channel that a band's outputs read."""
        return math.prod(self.phases) * (self.band.rows + self.halo(0)) * self.band.pitch

    def offsets(self) -> npt.NDArray[np.int32]:
        """Return the offset from an output's place to its input for each weight [c, r, s]."""
        (rows, row_phases), (columns, column_phases) = self.steps(0), self.steps(1)
        phases = row_phases[:, None] * self.phases[1] + column_phases
        within = phases * self.plane + rows[:, None] * self.band.pitch + columns
        return (np.arange(self.conv.c)[:, None, None] * self.channel + within).astype(np.int32)


@functools.cache
def best_band(planes: Planes) -> Band:
    """Return the band that costs least.

    Gaps between rows and the padding of the last tile are wasted work, and in every tile
    each nonzero costs two instructions beside its multiply-adds, to load value and offset.
    """
    # A tile of a large prime number of vectors cannot be split for processors with fewer registers.
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
