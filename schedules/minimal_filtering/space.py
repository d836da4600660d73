"""Panels of tiles and register tiles of their products: which fit a target, and what they cost."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from dlas.schedules.loops.vectors import VectorUnit, divisors, vector_unit
from dlas.schedules.minimal_filtering.stages import TileGrid
from dlas.stack import Conv, Decisions, Target

CACHE_BYTES = 3 * 2**17
"""Largest size of a panel's transformed input and a group's products that stay in a second-level cache."""
INPUT_TRANSFORM, OUTPUT_TRANSFORM = {2: 80, 4: 300}, {2: 40, 4: 150}
"""Costs of transforming a tile of one channel and of one filter, in multiply-adds, by the tile's size."""
A_LOAD = 0.2
"""Cost of a load, in multiply-adds that could run meanwhile."""
MOST_TILES = 14
"""Most tiles that are multiplied together in registers."""
MOST_BLOCKS = 4
"""Most blocks of filters that are multiplied together in registers."""


@dataclass(frozen=True)
class Panel:
    """A point of the design space.

    Parameters
    ----------
    panel : int
        Tiles that are transformed together, and stay in a cache while all filters are multiplied.
    tiles, filters : int
        Tiles and blocks of filters whose products are summed in registers together.
    parts : int
        Tasks that share a panel, each with a part of the filters; each transforms the panel itself.
    """

    panel: int
    tiles: int
    filters: int
    parts: int

    def cost(self, conv: Conv, grid: TileGrid, unit: VectorUnit, threads: int) -> float:
        """Return the multiply-adds that one thread could do in the time of the convolution."""
        tasks = conv.n * (grid.count // self.panel) * self.parts
        rounds = -(-tasks // threads)
        channels, square = conv.c // conv.groups, grid.inputs**2
        filters = -(-conv.k // grid.filters) * grid.filters
        vectors = self.filters * -(-grid.filters // unit.lanes)
        price = unit.price(vectors, self.tiles, self.panel) + A_LOAD * (vectors + self.tiles) / (
            vectors * self.tiles
        )
        # Filters are read once a panel, transformed inputs once a group of filters.
        products = square * channels * filters * (price + 1 / self.panel)
        if 4 * square * self.panel * (channels + self.filters * grid.filters) > CACHE_BYTES:
            products *= 1.2
        before = INPUT_TRANSFORM[grid.size] * -(-conv.c // grid.channels) * grid.channels
        after = OUTPUT_TRANSFORM[grid.size] * filters
        return rounds * self.panel * (before + (products + after) / self.parts)


def panel_points(conv: Conv, size: int, target: Target) -> Sequence[Decisions]:
    """Return the points of the design space for tiles of ``size``, the best guess for ``target`` first."""
    return [vars(panel) for panel, _ in _by_cost(conv, size, target)]


def least_cost(conv: Conv, size: int, target: Target) -> float:
    """Return the multiply-adds that one thread of ``target`` could do in the time of the best guess."""
    return _by_cost(conv, size, target)[0][1]


def _by_cost(conv: Conv, size: int, target: Target) -> list[tuple[Panel, float]]:
    """Return the points of the design space with their costs, the least first."""
    grid, unit = TileGrid.of(conv, size), vector_unit(target)
    panels = _panels(conv, grid, unit, target.threads)
    costs = [(panel, panel.cost(conv, grid, unit, target.threads)) for panel in panels]
    return sorted(costs, key=lambda pair: pair[1])


def _panels(conv: Conv, grid: TileGrid, unit: VectorUnit, threads: int) -> list[Panel]:
    """Return the panels whose register tiles fit in the registers."""
    blocks = -(-conv.k // grid.filters) // conv.groups
    vectors = -(-grid.filters // unit.lanes)
    return [
        Panel(panel, tiles, filters, parts)
        for panel in divisors(grid.count, grid.count)
        for tiles in divisors(panel, MOST_TILES)
        for filters in divisors(blocks, MOST_BLOCKS)
        if unit.fits(filters * vectors, tiles)
        for parts in divisors(blocks // filters, threads)
    ]
