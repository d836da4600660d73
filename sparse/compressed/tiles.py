"""The input packed into tiles, each with all that a tile of the output reads."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

from dlas.schedules.loops.vectors import divisors
from dlas.sparse.compressed.planes import WIDEST, Band, Planes

OVERLAP = 0.05
"""Cost of packing one input element an output, relative to the output's multiply-adds."""


@dataclass(frozen=True)
class Tiles(Planes):
    """Where the inputs of output tiles lie: a band is a tile of several rows and columns."""

    apart: ClassVar[bool] = True

    def shapes(self) -> Iterator[tuple[int, int, int]]:
        """Yield rows, columns and pitch of tiles of the output."""
        p, q = self.conv.p, self.conv.q
        for rows, columns in itertools.product(divisors(p, p), divisors(q, q)):
            if columns >= min(q, WIDEST - self.halo(1)):
                yield rows, columns, columns + self.halo(1)

    def price(self, band: Band) -> float:
        """Return the relative cost of a vector, with that of packing what tiles share."""
        read = (band.rows + self.halo(0)) * band.pitch
        return super().price(band) * (1 + OVERLAP * read / (band.rows * band.columns))
