"""Layers that hold others and join what they make: sums, products, branches side by side."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from dlas.axes.models.layers.kinds import (
    Layers,
    LayerSpec,
    Shape,
    are_tokens,
    macs,
    map_of,
    shown,
    text,
    weights,
    written,
)

INPUT = "input"
"""A branch of a concatenation that passes on what it reads."""


@dataclass(frozen=True)
class Around(LayerSpec):
    """What it reads, joined with what its layers make of that; ``word`` begins its text."""

    body: Layers

    word: ClassVar[str] = ""

    def __str__(self) -> str:
        return f"{self.word}({text(self.body)})"

    def inside(self, read: Shape) -> Shape:
        """Return the shape that its layers read."""
        return map_of(self, read)

    def weights(self, read: Shape) -> int:
        """Return the number of its layers' weights."""
        return weights(self.body, self.inside(read))

    def macs(self, read: Shape) -> int:
        """Return its layers' multiply-adds for one image."""
        return macs(self.body, self.inside(read))


@dataclass(frozen=True)
class Add(Around):
    """The sum of what it reads and of what its layers make of that."""

    word: ClassVar[str] = "add"

    def inside(self, read: Shape) -> Shape:
        """Return the shape that its layers read."""
        return read if are_tokens(read) else map_of(self, read)

    def written(self, read: Shape) -> Shape:
        """Return the shape that it reads; raises as :meth:`LayerSpec.written`."""
        after = written(self.body, self.inside(read))
        if after != read:
            raise ValueError(f"{str(self)!r} adds {shown(after)} to {shown(read)}: the shapes must be equal")
        return read


@dataclass(frozen=True)
class Mul(Around):
    """The product of what it reads and of what its layers make of that, or of one number a channel."""

    word: ClassVar[str] = "mul"

    def written(self, read: Shape) -> Shape:
        """Return the shape that it reads; raises as :meth:`LayerSpec.written`."""
        after = written(self.body, self.inside(read))
        if after not in (read, (read[0], 1, 1)):
            raise ValueError(
                f"{str(self)!r} multiplies {shown(read)} by {shown(after)}: "
                "the shapes must be equal, or the second a number a channel"
            )
        return read


@dataclass(frozen=True)
class Halves(Around):
    """Half of the channels as they are beside what its layers make of the other half (ShuffleNetV2)."""

    word: ClassVar[str] = "halves"

    def inside(self, read: Shape) -> Shape:
        """Return the shape of half of the channels; raises as :meth:`LayerSpec.written`."""
        c, h, w = map_of(self, read)
        if c % 2:
            raise ValueError(f"{str(self)!r} reads {c} channels, which have no halves")
        return c // 2, h, w

    def written(self, read: Shape) -> Shape:
        """Return the shape of its output; raises as :meth:`LayerSpec.written`."""
        half = self.inside(read)
        after = written(self.body, half)
        if after[1:] != half[1:]:
            raise ValueError(f"{str(self)!r} has halves of shapes {shown(half)}, {shown(after)}: {EQUAL}")
        return half[0] + after[0], *half[1:]


@dataclass(frozen=True)
class Cat(LayerSpec):
    """The channels of several branches side by side; an empty branch is what they read."""

    branches: tuple[Layers, ...]

    def __str__(self) -> str:
        return f"cat({'|'.join(text(branch) or INPUT for branch in self.branches)})"

    def written(self, read: Shape) -> Shape:
        """Return the shape of its output; raises as :meth:`LayerSpec.written`."""
        after = [written(branch, map_of(self, read)) for branch in self.branches]
        if len({shape[1:] for shape in after}) > 1 or len(after[0]) == 1:
            maps = ", ".join(map(shown, after))
            raise ValueError(f"{str(self)!r} has branches of shapes {maps}: {EQUAL}")
        return sum(shape[0] for shape in after), *after[0][1:]

    def weights(self, read: Shape) -> int:
        """Return the number of its layers' weights."""
        return sum(weights(branch, read) for branch in self.branches)

    def macs(self, read: Shape) -> int:
        """Return its layers' multiply-adds for one image."""
        return sum(macs(branch, read) for branch in self.branches)


EQUAL = "their maps must be equal"
AROUND: dict[str, type[Around]] = {kind.word: kind for kind in (Add, Mul, Halves)}
"""Layers that hold one list, by the word that begins them."""


def count(layers: Layers) -> int:
    """Return the number of layers, those inside of others and the joints counted."""
    total = 0
    for layer in layers:
        inside: tuple[Layers, ...] = ()
        if isinstance(layer, Around):
            inside = (layer.body,)
        elif isinstance(layer, Cat):
            inside = layer.branches
        total += 1 + sum(map(count, inside))
    return total
