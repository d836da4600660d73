"""Im2col with one copy of the input for each column of the kernel, and no more.

Row (c, r, s) of the matrix of patches holds the input under weight (c, r, s) of every
output.  Rows that differ in r alone hold the same, some rows of the output apart, so one
plane for each (c, s) holds them all; a weight's offset says where its row begins.  Rows
follow each other without gaps, or with gaps that align vector loads to half a vector:
unaligned loads are slower where they cross cache lines.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from dlas.schedules.loops.vectors import divisors
from dlas.sparse.compressed.planes import WIDEST, Band, Planes
from dlas.stack.array import Int64Array

CROSSING = 0.5
"""Cost of an unaligned load, relative to a vector multiply-add."""


@dataclass(frozen=True)
class Patches(Planes):
    """Where the patches of a convolution's outputs lie, written for each band by itself.

    References
    ----------
    M. Cho and D. Brand, "MEC: Memory-efficient Convolution for Deep Neural Network", 2017.
    """

    apart: ClassVar[bool] = True

    def shapes(self) -> Iterator[tuple[int, int, int]]:
        """Yield rows, columns and pitch: without gaps, or with rows a multiple of half a vector."""
        half = WIDEST // 2
        for rows in divisors(self.conv.p, self.conv.p):
            for pitch in sorted({self.conv.q, -(-self.conv.q // half) * half}):
                yield rows, self.conv.q, pitch

    def price(self, band: Band) -> float:
        """Return the relative cost of a vector of a band, with its loads."""
        across = self.steps(0)[0] * band.pitch % (WIDEST // 2) != 0
        return super().price(band) * (1 + CROSSING * float(across.mean()))

    def steps(self, axis: int) -> tuple[Int64Array, Int64Array]:
        """Return how many rows further each weight reads, and in which phase: one a column of the kernel."""
        if axis == 0:
            return super().steps(axis)
        return np.zeros(self.conv.s, np.int64), np.arange(self.conv.s)

    def begin(self, axis: int, phase: int) -> int:
        """Return the row or column of the padded input that is a phase's first."""
        return phase * (self.conv.dilation[1] if axis else 1)
