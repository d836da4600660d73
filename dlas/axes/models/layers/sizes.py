"""Draw the sizes of convolutions: half those of real networks, half any in the ranges of those."""

from __future__ import annotations

import random
from collections.abc import Collection, Iterator
from typing import TypeVar

from dlas.axes.models.layers.kinds import ConvSpec, LayerSpec, Shape
from dlas.axes.models.layers.seen import Combination, real_layers

IMAGE: Shape = (3, 224, 224)
"""What sizes are meant for; smaller images only make maps smaller."""
MOST_MACS = 300_000_000
"""Multiply-adds of a network for one such image, unless more are asked for."""
SHARE = 0.5
"""Of the multiply-adds that are left, what one convolution may take."""
SMALLEST = 7
"""Side of maps that strides no longer make smaller."""
NEAR = 2
"""Largest ratio of the side of the map that a real convolution reads to that of the map here."""
GROUPS = (2, 4, 8, 16, 32)
DILATED = 0.1
"""Share of kernels of any sizes that are dilated; no real network here has such."""
FEWEST_FILTERS = 8
Kind = TypeVar("Kind", bound=LayerSpec)


class Sizes:
    """A list under way: the shape that it writes for :data:`IMAGE`, and the multiply-adds that are left.

    Parameters
    ----------
    dice : random.Random
    most_macs : int
        Multiply-adds of the whole network for such an image.
    """

    def __init__(self, dice: random.Random, most_macs: int) -> None:
        self.dice, self.seen = dice, real_layers()
        self.shape, self.left = IMAGE, most_macs
        self.real, self.free = dice.choice(((0, 0), (1, 0)))

    def put(self, layer: Kind) -> Kind:
        """Return a layer, and note what it takes and writes."""
        self.left -= layer.macs(self.shape)
        self.shape = layer.written(self.shape)
        return layer

    def convolution(
        self,
        kinds: Collection[str],
        filters: int | None = None,
        strides: Collection[int] = (1,),
        most: int | None = None,
        multiple: int = 1,
    ) -> ConvSpec:
        """Return a convolution as a real network has it, unless half are or none fits, or one at random."""
        fits = [
            real
            for real in self.near(self.seen.reading.get(self.shape[0], ()))
            if real.kind in kinds
            and real.stride in strides
            and (filters is None or real.k == filters)
            and real.k <= (most or real.k)
            and real.k % multiple == 0
            and as_layer(real).macs(self.shape) <= SHARE * self.left
        ]
        if fits and self.real <= self.free:
            self.real += 1
            return self.put(as_layer(self.dice.choice(fits)))
        self.free += 1
        kind, stride = self.dice.choice([*kinds]), self.dice.choice([*strides])
        return self.put(self.any_convolution(kind, stride, filters, most, multiple))

    def any_convolution(
        self, kind: str, stride: int, filters: int | None, most: int | None, multiple: int
    ) -> ConvSpec:
        """Return a convolution whose sizes are at random in the ranges of real ones."""
        like = self.dice.choice(self.seen.by_kind["spatial" if kind == "grouped" else kind])
        dilation = 2 if max(like.r, like.s) > 1 and self.dice.random() < DILATED else 1
        if kind == "depthwise":
            return ConvSpec(like.r, like.s, None, stride, dilation=dilation)
        groups = self.groups(filters) if kind == "grouped" else 1
        multiple = max(multiple, groups)
        if filters is None:
            single = ConvSpec(like.r, like.s, multiple, stride, groups).macs(self.shape) / multiple
            afforded = int(SHARE * self.left / single)
            filters = self.filters(kind, min(afforded, most or afforded)) // multiple * multiple
            filters = max(multiple, filters)
        return ConvSpec(like.r, like.s, filters, stride, groups, dilation)

    def filters(self, kind: str, most: int) -> int:
        """Return how many filters to write: what a real convolution reads, where one is due, or in range."""
        most = max(FEWEST_FILTERS, most)
        if self.real <= self.free:
            read = [real.c for real in self.near(self.seen.combinations) if FEWEST_FILTERS <= real.c <= most]
            if read:
                return self.dice.choice(read)
        return self.seen.filters[kind].draw(self.dice, most)

    def groups(self, filters: int | None) -> int:
        """Return a number of groups in which the channels here, and the filters, can be."""
        channels = self.shape[0]
        possible = [
            groups for groups in GROUPS if channels % groups == 0 and (filters or groups) % groups == 0
        ]
        possible = [groups for groups in possible if groups < channels]
        return self.dice.choice(possible or [1])

    def near(self, combinations: Collection[Combination]) -> Iterator[Combination]:
        """Yield the combinations that read maps of about the size here."""
        side = self.shape[1]
        return (real for real in combinations if side / NEAR <= real.side <= side * NEAR)

    def strides(self) -> tuple[int, ...]:
        """Return the strides that the next convolution may have."""
        return (1, 2) if self.shape[1] > SMALLEST else (1,)


def as_layer(real: Combination) -> ConvSpec:
    """Return a real network's convolution as a layer of a list."""
    filters = None if real.kind == "depthwise" else real.k
    groups = 1 if real.kind == "depthwise" else real.groups
    return ConvSpec(real.r, real.s, filters, real.stride, groups, real.dilation)
