"""Which outputs a GPU thread computes, and which threads form a block: what fits, the best guess first."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass

from dlas.schedules.loops.gpu_threads import BUSY, FEWEST, MOST, USUAL, WARP, most_threads
from dlas.schedules.loops.vectors import divisors
from dlas.stack import Decisions, Target

WIDTHS = (1, 2, 4, 8)
"""Warps of a thread block along the outputs of a filter, where there are so many outputs; a warp computes one
row, since rows differ in length."""
SUMS = 32
"""Most outputs of a thread: a quarter of its registers with 512 threads a block."""
PLACES = 8
"""Most outputs of one filter in a thread."""
OVERHEAD = 3
"""Instructions an entry beside its loads and multiply-adds: its offset and the loop."""
POINTS = 64
"""Most points of a design space."""


@dataclass(frozen=True)
class ThreadTile:
    """What a thread computes, and which threads form a block."""

    images: int
    """Images, rows of the output, and filters of a row of entries that a thread computes. It computes one
    column only, so that loads of neighbouring threads coalesce.
    """
    lines: int
    """Images, rows of the output, and filters of a row of entries that a thread computes. It computes one
    column only, so that loads of neighbouring threads coalesce.
    """
    filters: int
    """Images, rows of the output, and filters of a row of entries that a thread computes. It computes one
    column only, so that loads of neighbouring threads coalesce.
    """
    rows: int
    """Rows of entries that a thread block computes from the same inputs."""
    threads: int
    """Along the outputs of a filter."""

    def block(self, height: int) -> int:
        """Return the threads of a block where a row of entries has ``height`` filters."""
        return self.threads * self.rows * (height // self.filters)

    def cost(self, extents: Sequence[int]) -> float:
        """Return instructions a multiply-add, scaled up where threads are idle or too few."""
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
    """
    height = extents[3]
    tiles = list(_tiles(extents, most_threads(target)))
    worthwhile = [tile for tile in tiles if FEWEST <= tile.block(height) <= MOST] or tiles
    best = sorted(worthwhile, key=lambda tile: (tile.cost(extents), abs(tile.block(height) - USUAL)))
    return [asdict(tile) for tile in best[:POINTS]]


def _tiles(extents: Sequence[int], most: int) -> Iterator[ThreadTile]:
    """Yield every tile that divides the loops of ``output``, with at most ``most`` threads a block."""
    n, _, rows, height, p, q = extents
    for images, lines in itertools.product(divisors(n, PLACES), divisors(p, PLACES)):
        run = p // lines * q
        warps = {min(width, -(-run // WARP)) for width in WIDTHS}
        for filters, wide in itertools.product(divisors(height, height), sorted(warps)):
            lanes = wide * WARP * (height // filters)
            if images * lines <= PLACES and images * lines * filters <= SUMS and lanes <= most:
                for side in divisors(rows, most // lanes):
                    yield ThreadTile(images, lines, filters, side, wide * WARP)
