"""Panels of tiles and register tiles of their products: which fit a target, and what they cost."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from dlas.schedules.loops.vectors import VectorUnit, divisors, vector_unit
from dlas.schedules.minimal_filtering.stages import TileGrid
from dlas.stack import Conv, Decisions, Target

CACHE_BYTES, SHARED_BYTES = 3 * 2**17, 2**23
"""What a kernel can count on of a core's second-level cache, and of the cache that cores share."""
FROM_SHARED, FROM_MEMORY = 0.2, 1.0
"""Costs of moving a byte between a core and the shared cache or memory, in multiply-adds."""
INPUT_TRANSFORM, OUTPUT_TRANSFORM = {2: 80, 4: 300}, {2: 40, 4: 150}
"""Costs of transforming a tile of one channel and of one filter, in multiply-adds, by the tile's size."""
FEW_REGISTERS, SPILLED = 16, 2.5
"""With so few registers, of which a tile of 36 inputs has no room, its transforms cost so many times as much.

Fitted to the layers of six networks with AVX2.
"""
A_LOAD = 0.2
"""Cost of a load into a register that has to wait, in multiply-adds."""
MOST_TILES = 14
"""Most tiles that are multiplied together in registers."""
MOST_BLOCKS = 4
"""Most blocks of filters that are multiplied together in registers."""


@dataclass(frozen=True)
class Blocking:
    """A point of the design space."""

    panel: int
    """Tiles that are transformed together, and stay in a cache while all filters are multiplied."""
    tiles: int
    """Tiles and blocks of filters whose products are summed in registers together."""
    filters: int
    """Tiles and blocks of filters whose products are summed in registers together."""
    parts: int
    """Tasks that share a panel, each with a part of the filters; each transforms the panel itself."""

    def cost(self, conv: Conv, grid: TileGrid, unit: VectorUnit, threads: int) -> float:
        """Return the multiply-adds that one thread could do in the time of the convolution."""
        panels = conv.n * (grid.count // self.panel)
        tasks = panels * self.parts
        channels, filters = conv.c // conv.groups, -(-conv.k // grid.filters) * grid.filters
        slow = SPILLED if unit.registers <= FEW_REGISTERS and grid.size > 2 else 1.0
        before = slow * INPUT_TRANSFORM[grid.size] * -(-conv.c // grid.channels) * grid.channels
        after = slow * OUTPUT_TRANSFORM[grid.size] * filters
        products = grid.inputs**2 * channels * filters * self._price(grid, unit)
        read = self._read(panels, channels, filters, grid)
        return -(-tasks // threads) * (self.panel * (before + (products + after) / self.parts) + read)

    def _price(self, grid: TileGrid, unit: VectorUnit) -> float:
        """Return the time of a multiply-add in registers, relative to the best possible."""
        vectors = self.filters * unit.vectors(grid.filters)
        loads = (vectors + self.tiles) / (vectors * self.tiles)
        return unit.price(vectors, self.tiles, self.panel) + A_LOAD * loads

    def _read(self, panels: int, channels: int, filters: int, grid: TileGrid) -> float:
        """Return the cost for a task of reading again: filters, and a panel that its cache does not hold."""
        group, a_number = self.filters * grid.filters, 4 * grid.inputs**2
        weights = a_number * channels * filters
        inputs, products = a_number * channels * self.panel, a_number * group * self.panel
        cost = weights * _rate(weights) * (1 - 1 / panels)
        if inputs + products > CACHE_BYTES:
            # A panel is written once and read by each group; a group's products are written and read.
            groups = filters / group
            cost += (inputs * (groups + self.parts) + 2 * products * groups) * _rate(inputs + products)
        return cost / self.parts


def _rate(size: int) -> float:
    """Return the cost of a byte of something that has ``size`` bytes and is read again and again."""
    return FROM_SHARED if size <= SHARED_BYTES else FROM_MEMORY


def panel_points(conv: Conv, size: int, target: Target) -> Sequence[Decisions]:
    """Return the points of the design space for tiles of ``size``, the best guess for ``target`` first."""
    return [vars(panel) for panel, _ in _by_cost(conv, size, target)]


def least_cost(conv: Conv, size: int, target: Target) -> float:
    """Return the multiply-adds that one thread of ``target`` could do in the time of the best guess."""
    return _by_cost(conv, size, target)[0][1]


def _by_cost(conv: Conv, size: int, target: Target) -> list[tuple[Blocking, float]]:
    """Return the points of the design space with their costs, the least first."""
    grid, unit = TileGrid.of(conv, size), vector_unit(target)
    panels = _panels(conv, grid, unit, target.threads)
    costs = [(panel, panel.cost(conv, grid, unit, target.threads)) for panel in panels]
    return sorted(costs, key=lambda pair: pair[1])


def _panels(conv: Conv, grid: TileGrid, unit: VectorUnit, threads: int) -> list[Blocking]:
    """Return the panels whose register tiles fit in the registers."""
    blocks = -(-conv.k // grid.filters) // conv.groups
    vectors = unit.vectors(grid.filters)
    return [
        Blocking(panel, tiles, filters, parts)
        for panel in divisors(grid.count, grid.count)
        for tiles in divisors(panel, MOST_TILES)
        for filters in divisors(blocks, MOST_BLOCKS)
        if unit.fits(filters * vectors, tiles)
        for parts in divisors(blocks // filters, threads)
    ]
