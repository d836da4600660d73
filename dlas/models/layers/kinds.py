"""The kinds of layers that a list of layers holds, and what each makes of the shape that it reads."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Protocol

from torch import nn

Shape = tuple[int, ...]
"""Of one image's tensor: (c, h, w), or (features,) behind a linear layer."""
ACTIVATIONS: dict[str, type[nn.Module]] = {
    "relu": nn.ReLU,
    "relu6": nn.ReLU6,
    "hardswish": nn.Hardswish,
    "hardsigmoid": nn.Hardsigmoid,
    "silu": nn.SiLU,
    "sigmoid": nn.Sigmoid,
    "gelu": nn.GELU,
    "elu": nn.ELU,
    "tanh": nn.Tanh,
}
INPUT = "input"
"""A branch of a concatenation that passes on what it reads."""


class Layer(Protocol):
    """One layer; its text is its own in the list."""

    def written(self, read: Shape) -> Shape:
        """Return the shape of its output.

        Raises
        ------
        ValueError
            If it cannot read this shape.
        """

    def weights(self, read: Shape) -> int:
        """Return the number of its weights."""


Layers = tuple[Layer, ...]


@dataclass(frozen=True)
class Conv:
    """A convolution, depthwise without ``filters``; its padding keeps the map's size but for strides."""

    r: int
    s: int
    filters: int | None
    stride: int = 1
    groups: int = 1

    def __str__(self) -> str:
        size = f"{self.r}x{self.s}"
        name = f"dw{size}" if self.filters is None else f"conv{size}-{self.filters}"
        return name + _suffix("/", self.stride) + _suffix("g", self.groups)

    def written(self, read: Shape) -> Shape:
        """Return the shape of its output; raises as :meth:`Layer.written`."""
        c, h, w = _map(self, read)
        if not (self.r % 2 and self.s % 2):
            raise ValueError(f"{str(self)!r}: the sizes of a kernel are odd, so that padding is even")
        for count, what in ((c, "channels that it reads"), (self.filters or c, "filters")):
            if count % self.groups:
                raise ValueError(f"{str(self)!r}: {self.groups} groups do not divide {count} {what}")
        if self.filters == c == self.groups and c > 1:
            raise ValueError(f"{str(self)!r} is depthwise here: write 'dw{self.r}x{self.s}'")
        return self.filters or c, math.ceil(h / self.stride), math.ceil(w / self.stride)

    def weights(self, read: Shape) -> int:
        """Return the number of its weights."""
        return (self.filters or 1) * read[0] // self.groups * self.r * self.s


@dataclass(frozen=True)
class Pool:
    """Maximum or average pooling; an odd window is padded, and one that does not fit is left out."""

    kind: str
    size: int
    stride: int = 1

    def __str__(self) -> str:
        return f"{self.kind}{self.size}" + _suffix("/", self.stride)

    @property
    def padding(self) -> int:
        """Pixels on each side."""
        return self.size // 2 if self.size % 2 else 0

    def fits(self, read: Shape) -> bool:
        """Return whether there is more than a pixel, and room for the window."""
        return max(read[1:]) > 1 and min(read[1:]) + 2 * self.padding >= self.size

    def written(self, read: Shape) -> Shape:
        """Return the shape of its output; raises as :meth:`Layer.written`."""
        c, h, w = _map(self, read)
        if not self.fits(read):
            return read
        p, q = ((n + 2 * self.padding - self.size) // self.stride + 1 for n in (h, w))
        return c, p, q

    def weights(self, read: Shape) -> int:
        """Return 0."""
        return 0


@dataclass(frozen=True)
class AdaptivePool:
    """Average pooling to ``size`` by ``size``, or to the largest smaller map that divides its own evenly.

    Not every runtime can compute windows of uneven sizes.
    """

    size: int

    def __str__(self) -> str:
        return f"adaptive{self.size}"

    def written(self, read: Shape) -> Shape:
        """Return the shape of its output; raises as :meth:`Layer.written`."""
        c, h, w = _map(self, read)
        p, q = (max(each for each in range(1, self.size + 1) if n % each == 0) for n in (h, w))
        return c, p, q

    def weights(self, read: Shape) -> int:
        """Return 0."""
        return 0


@dataclass(frozen=True)
class Norm:
    """Batch norm."""

    def __str__(self) -> str:
        return "bn"

    def written(self, read: Shape) -> Shape:
        """Return the shape that it reads; raises as :meth:`Layer.written`."""
        return _map(self, read)

    def weights(self, read: Shape) -> int:
        """Return the number of its weights."""
        return 4 * read[0]


@dataclass(frozen=True)
class Activation:
    """One of :data:`ACTIVATIONS`."""

    name: str

    def __str__(self) -> str:
        return self.name

    def written(self, read: Shape) -> Shape:
        """Return the shape that it reads."""
        return read

    def weights(self, read: Shape) -> int:
        """Return 0."""
        return 0


@dataclass(frozen=True)
class Linear:
    """A linear layer, which reads a map as one row of numbers."""

    features: int

    def __str__(self) -> str:
        return f"linear-{self.features}"

    def written(self, read: Shape) -> Shape:
        """Return the shape of its output."""
        return (self.features,)

    def weights(self, read: Shape) -> int:
        """Return the number of its weights."""
        return math.prod(read) * self.features


@dataclass(frozen=True)
class Add:
    """The sum of what it reads and of what its layers make of that."""

    body: Layers

    def __str__(self) -> str:
        return f"add({text(self.body)})"

    def written(self, read: Shape) -> Shape:
        """Return the shape that it reads; raises as :meth:`Layer.written`."""
        after = written(self.body, _map(self, read))
        if after != read:
            raise ValueError(f"{str(self)!r} adds {shown(after)} to {shown(read)}: the shapes must be equal")
        return read

    def weights(self, read: Shape) -> int:
        """Return the number of its layers' weights."""
        return weights(self.body, read)


@dataclass(frozen=True)
class Cat:
    """The channels of several branches side by side; an empty branch is what they read."""

    branches: tuple[Layers, ...]

    def __str__(self) -> str:
        return f"cat({'|'.join(text(branch) or INPUT for branch in self.branches)})"

    def written(self, read: Shape) -> Shape:
        """Return the shape of its output; raises as :meth:`Layer.written`."""
        after = [written(branch, _map(self, read)) for branch in self.branches]
        if len({shape[1:] for shape in after}) > 1 or len(after[0]) == 1:
            maps = ", ".join(map(shown, after))
            raise ValueError(f"{str(self)!r} has branches of shapes {maps}: their maps must be equal")
        return sum(shape[0] for shape in after), *after[0][1:]

    def weights(self, read: Shape) -> int:
        """Return the number of its layers' weights."""
        return sum(weights(branch, read) for branch in self.branches)


def text(layers: Layers) -> str:
    """Return the list of layers as a text, of which there is only one for the same list."""
    return ",".join(map(str, layers))


def written(layers: Layers, read: Shape) -> Shape:
    """Return the shape of a list's output; raises as :meth:`Layer.written`."""
    for layer in layers:
        read = layer.written(read)
    return read


def weights(layers: Layers, read: Shape) -> int:
    """Return the number of a list's weights."""
    total = 0
    for layer in layers:
        total, read = total + layer.weights(read), layer.written(read)
    return total


def shown(shape: Shape) -> str:
    """Return a shape as ``64x7x7``."""
    return "x".join(map(str, shape))


def _suffix(mark: str, value: int) -> str:
    return f"{mark}{value}" if value > 1 else ""


def _map(layer: object, read: Shape) -> tuple[int, int, int]:
    """Return the sizes of the map that a layer reads."""
    if len(read) != 3:
        raise ValueError(f"{str(layer)!r} reads a map, and a linear layer before it has left none")
    return read[0], read[1], read[2]
