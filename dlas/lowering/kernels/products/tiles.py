"""Register tiles of matrix products: a few rows by panels of neighbouring outputs.

The loops over tiles are, from the outermost: groups of panels, tiles of rows, tiles of the
group's panels.  A group's weights are read from memory once and then, for every tile of rows,
from a cache; all rows are read once a group.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from dlas.schedules.loops.vectors import VectorUnit, divisors, vector_unit
from dlas.stack import Decisions, Target

MOST_ROWS = 14
"""Most rows of a tile."""
MOST_PANELS = 4
"""Most panels of a tile."""
READ = 0.6
"""Cost of reading a vector of weights from a cache for one row of a tile, in multiply-adds."""
GROUP_BYTES = 400_000
"""Largest size of a group's weights that stays in a second-level cache."""
STREAMED_BYTES, STREAMING_LANES = 10**8, 16
"""Most bytes of weights that tiles of rows read from beyond the second-level cache, and the fewest lanes of
vectors with which they do at all: with fewer, tiles have fewer rows, and read the weights more often.
"""
WAY_BYTES, WAYS = 4096, 6
"""Addresses so far apart share a set of a first-level cache, with ways for so many rows beside weights."""
NARROW = 16
"""Fewest outputs of a panel: whole vectors on any processor."""


def panel_width(outputs: int, target: Target) -> int:
    """Return the outputs of a panel: two vectors or a cache line, or a vector where there are few outputs."""
    if not target.on_processors or outputs <= NARROW:
        return NARROW
    return max(NARROW, 2 * vector_unit(target).lanes)


def whole_rows(rows: int, width: int, target: Target) -> int:
    """Return how many rows are computed: with those beyond ``rows``, tiles of a good size divide them."""
    if not target.on_processors:
        return rows
    unit = vector_unit(target)
    vectors = -(-width // unit.lanes)

    def cost(whole: int) -> float:
        return whole / rows * min(_cost(unit, vectors, tile) for tile in _fitting(unit, vectors, whole))

    return min(range(rows, rows + MOST_ROWS), key=cost)


def _fitting(unit: VectorUnit, vectors: int, rows: int) -> list[int]:
    """Return the divisors of ``rows`` that fit in registers beside ``vectors`` vectors of weights."""
    return [tile for tile in divisors(rows, MOST_ROWS) if _fits(unit, vectors, tile)] or [1]


def _fits(unit: VectorUnit, vectors: int, rows: int) -> bool:
    """Whether a tile's sums fit in registers, beside the operands of its rows or of its vectors.

    A single row needs more vectors than :meth:`VectorUnit.fits` allows, and reads their weights
    from memory as it multiplies.
    """
    return vectors * rows + min(vectors, rows) + 1 <= unit.registers


def _cost(unit: VectorUnit, vectors: int, rows: int) -> float:
    """Return the time of a tile per multiply-add, relative to the best possible."""
    return unit.price(vectors, rows, rows) + READ / rows


def best_rows(rows: int, width: int, target: Target) -> int:
    """Return the rows of the best tile of one panel that divide ``rows``."""
    unit = vector_unit(target)
    vectors = -(-width // unit.lanes)
    return min(_fitting(unit, vectors, rows), key=lambda tile: _cost(unit, vectors, tile))


def row_tiles(rows: int, terms: int, panels: int, width: int, target: Target) -> Sequence[Decisions]:
    """Return the register tiles of a product with constant weights, the best guess first.

    Parameters
    ----------
    rows : int
        What :func:`whole_rows` returned.
    terms : int
        Length of a sum.
    panels, width : int
        Panels of weights, and their outputs.

    Returns
    -------
    sequence of mapping
        ``rows`` and ``panels`` of a tile, tiles of panels in a ``group``, and whether rows are ``copied``.
    """
    unit = vector_unit(target)
    vectors = -(-width // unit.lanes)
    tiles = [
        (tile, together)
        for tile in divisors(rows, MOST_ROWS)
        for together in divisors(panels, MOST_PANELS)
        if _fits(unit, vectors * together, tile)
    ]
    tiles.sort(key=lambda tile: (_cost(unit, vectors * tile[1], tile[0]), tile[1]))
    return [
        {"rows": tile, "panels": together, "group": group, "copied": copied}
        for tile, together in tiles[:6]
        for group in _groups(rows // tile, panels // together, 4 * terms * width * together, target)
        for copied in _copied(tile, terms)
    ]


def _groups(tiles: int, panels: int, panel_bytes: int, target: Target) -> list[int]:
    """Return how many tiles of panels may be a group, the best guess first.

    Weights that exceed the cache are read again for every tile of rows, if they are one group;
    a small group reads all rows again.
    """
    if tiles == 1:
        return [1]
    shared = [group for group in divisors(panels, panels) if panels // group * tiles >= target.threads]
    whole = (shared or [1])[-1]
    fitting = [group for group in shared if group * panel_bytes <= GROUP_BYTES]
    largest = fitting[-1] if fitting else 1
    streams = vector_unit(target).lanes >= STREAMING_LANES
    guess = whole if streams and tiles * whole * panel_bytes <= STREAMED_BYTES else largest
    return list(dict.fromkeys([guess, largest, 1, whole]))


def _copied(rows: int, terms: int) -> tuple[int, ...]:
    """Return whether a tile's rows are copied next to each other, the best guess first."""
    if rows == 1 or copy_block(terms) < 4:
        return (0,)
    sets = WAY_BYTES // math.gcd(WAY_BYTES, 4 * terms)
    return (1, 0) if rows > WAYS * sets else (0, 1)


def copy_block(terms: int) -> int:
    """Return how many terms of a row stay neighbours in a copy."""
    return divisors(terms, 16)[-1]
