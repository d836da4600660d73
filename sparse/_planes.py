"""The padded input laid out flat, so that a weight is one distance from every output to its input.

A channel is a plane, its rows one after the other.  With a stride it is several planes,
a phase each: a stride of 2 reads even columns from one and odd columns from the
other.  An output's place, counted with the same number of columns a row, plus a
weight's offset is where its input lies, whatever the stride, the dilation, the padding
and the group; and neighbours of the one are neighbours of the other.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from tvm import tirx
from tvm.script.ir_builder import tirx as T

from dlas.convolution import Conv
from dlas.schedules._loops import bind, stage
from dlas.schedules._registers import divisors
from dlas.sparse._blocks import block, scratch, whole

WIDEST = 16
"""Numbers of 32 bits in the widest vector there is."""
COPY = 1.2
"""What it costs to lay an input without gaps out anew, because bands have a rest to read beyond its end."""
LONGEST = 30
"""Vectors of a band, at most: a longer one has more inputs and no less waste."""
FEWEST = 14
"""Vectors of sums that fit in the registers of the processors that have fewest."""


@dataclass(frozen=True)
class Planes:
    """Where the inputs of a convolution's outputs lie.

    Outputs are computed in bands: some rows with the gaps between them, cut into vectors.

    Parameters
    ----------
    conv : Conv
    tile : int
        Vectors of 16 that are computed together, at most.
    """

    conv: Conv
    tile: int

    # ------------------------------------------------------------ the input

    @property
    def phases(self) -> tuple[int, int]:
        """Phases along height and width, up to the last that a weight reads."""
        row_phases, column_phases = (self._steps(axis)[1] for axis in (0, 1))
        return 1 + int(row_phases.max()), 1 + int(column_phases.max())

    @property
    def rows(self) -> int:
        """Rows of a phase."""
        return self.conv.p + int(self._steps(0)[0].max())

    @property
    def pitch(self) -> int:
        """Columns of a phase."""
        return self.conv.q + int(self._steps(1)[0].max())

    @property
    def plane(self) -> int:
        """Numbers of a phase; a multiple of a vector, so that planes start where vectors do."""
        return -(-self.rows * self.pitch // WIDEST) * WIDEST

    @property
    def channel(self) -> int:
        """Numbers of a channel: all of its phases."""
        return self.phases[0] * self.phases[1] * self.plane

    @property
    def as_given(self) -> bool:
        """Whether the input lies like this already, with nothing to be read beyond its end."""
        conv = self.conv
        plain = (conv.r, conv.s, conv.strides) == (1, 1, (1, 1)) and not any(conv.padding)
        return plain and conv.h * conv.w == self.plane and self.band == self.step

    def _steps(self, axis: int) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
        """Return how many rows (axis 0) or columns (axis 1) further each weight reads, and in which phase."""
        weights, conv = (self.conv.r, self.conv.s)[axis], self.conv
        return np.divmod(np.arange(weights) * conv.dilation[axis], conv.strides[axis])

    def offsets(self) -> npt.NDArray[np.int32]:
        """Return how far it is from an output's place to its input, for each weight [c, r, s]."""
        (rows, row_phases), (columns, column_phases) = self._steps(0), self._steps(1)
        phases = row_phases[:, None] * self.phases[1] + column_phases
        within = phases * self.plane + rows[:, None] * self.pitch + columns
        return (np.arange(self.conv.c)[:, None, None] * self.channel + within).astype(np.int32)

    # ------------------------------------------------------------ the output

    @property
    def rows_a_band(self) -> int:
        """Rows of the output that make a band."""
        return best_band(self.conv.p, self.conv.q, self.pitch, self.tile)[0]

    @property
    def band(self) -> int:
        """Places of a band: its outputs, the gaps between its rows, and the rest of its last tile."""
        return best_band(self.conv.p, self.conv.q, self.pitch, self.tile)[1] * WIDEST

    @property
    def bands(self) -> int:
        """Bands of the output."""
        return self.conv.p // self.rows_a_band

    @property
    def step(self) -> int:
        """Places from one band to the next."""
        return self.rows_a_band * self.pitch

    @property
    def under_a_band(self) -> int:
        """Numbers of a channel that a band's outputs read."""
        rows = self.rows_a_band + self.rows - self.conv.p
        return self.phases[0] * self.phases[1] * rows * self.pitch

    # ------------------------------------------------------------ the kernel

    def lay(self, x: Any) -> Any:
        """Write the block ``pad`` of a kernel; return the planes [n, ...], or ``x`` where it needs none.

        The border is written first and the image over it: without a test for each
        number, both are plain copies.
        """
        conv = self.conv
        if self.as_given:
            return x
        beyond = self.band - self.step + self.pitch - conv.q  # read for places that hold no output
        planes = scratch("planes", (conv.n, conv.c * self.channel + beyond), conv.input_type)
        with block("pad", {"n": conv.n, "c": conv.c}) as (n, c):
            first = c * self.channel
            T.reads(x[n, c, 0 : conv.h, 0 : conv.w])
            T.writes(planes[n, first : first + self.channel])
            with T.serial(self.channel) as place:
                border = tirx.const(conv.padding_value, conv.input_type)
                T.buffer_store(planes, border, (n, first + place))
            for number, phase in enumerate(np.ndindex(self.phases)):
                self._copy(x, planes, (n, c), first + number * self.plane, phase)
        return planes

    def _copy(self, x: Any, planes: Any, at: tuple[Any, Any], first: Any, phase: tuple[int, ...]) -> None:
        """Write the image's part of one phase, whose plane begins at ``first``."""
        conv = self.conv
        (top, bottom), (left, right) = (self._inside(axis, phase[axis]) for axis in (0, 1))
        if top == bottom or left == right:
            return
        with T.grid(bottom - top, right - left) as (i, j):
            row = (top + i) * conv.strides[0] + (phase[0] - conv.padding[0])
            column = (left + j) * conv.strides[1] + (phase[1] - conv.padding[1])
            place = first + (top + i) * self.pitch + (left + j)
            T.buffer_store(planes, x[(*at, row, column)], (at[0], place))

    def _inside(self, axis: int, phase: int) -> tuple[int, int]:
        """Return from and to which row (axis 0) or column (axis 1) a phase holds the image."""
        stride, before = self.conv.strides[axis], self.conv.padding[axis] - phase
        image, there = ((self.conv.h, self.rows), (self.conv.w, self.pitch))[axis]
        first, last = (min(max(-(-edge // stride), 0), there) for edge in (before, before + image))
        return first, last

    def written(self, planes: Any) -> Any:
        """Return the region of the planes that has a value."""
        return whole(planes) if self.as_given else planes[0 : self.conv.n, 0 : self.conv.c * self.channel]

    def pixel(self, planes: Any, n: Any, offset: Any, band: Any, place: Any) -> Any:
        """Return the input that a weight's offset leads to from a place of a band."""
        # An input as it is given has axes of its own; its numbers still follow each other.
        return planes[(n, *[0] * (len(planes.shape) - 2), offset + band * self.step + place)]


@functools.cache
def best_band(rows: int, columns: int, pitch: int, most: int) -> tuple[int, int]:
    """Return how many rows of the output, and how many vectors, make the band that costs least.

    Gaps between rows and the rest of the last tile are computed for nothing, and in every
    tile each nonzero costs two instructions beside its products, for value and place.

    Parameters
    ----------
    rows, columns : int
        Of the output.
    pitch : int
        From one row to the next.
    most : int
        Vectors of a tile, at most.
    """

    def vectors(band: int, tile: int) -> int:
        return -(-((band - 1) * pitch + columns) // (WIDEST * tile)) * tile

    def cost(choice: tuple[int, int]) -> float:
        band, tile = choice
        laid = COPY if pitch == columns and vectors(band, tile) * WIDEST > band * pitch else 1
        return laid * vectors(band, tile) * (1 + 2 / tile) / (band * columns)

    # A tile of a large prime number of vectors has no parts for processors with fewer registers.
    tiles = [tile for tile in range(1, most + 1) if divisors(tile, FEWEST)[-1] > min(tile, 4) - 1]
    bands = [band for band in divisors(rows, rows) if band == 1 or vectors(band, 1) <= LONGEST]
    band, tile = min(((band, tile) for band in bands for tile in tiles), key=cost)
    return band, vectors(band, tile)


def spread_planes(schedule: Any, gpu: bool) -> None:
    """Share the channels of the padded input among threads."""
    padding = stage(schedule, "pad")
    if padding is None:
        return
    if gpu:
        bind(schedule, padding, 2)
    else:
        schedule.parallel(schedule.fuse(*schedule.get_loops(padding)))
