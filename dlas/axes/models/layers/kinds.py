"""The kinds of layers that a list of layers holds, and what each makes of the shape that it reads."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import NamedTuple

from torch import nn

Shape = tuple[int, ...]
"""Of one image's tensor: (c, h, w), or (features,) behind a linear layer; of tokens (tokens, features), or
:class:`Last`.
"""


class Last(NamedTuple):
    """The shape of a map whose channels come last."""

    h: int
    w: int
    c: int


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


class LayerSpec(ABC):
    """One layer; by default it keeps the shape of a map, and has neither weights nor multiply-adds."""

    @abstractmethod
    def __str__(self) -> str:
        """Return its text in the list."""

    def written(self, read: Shape) -> Shape:
        """Return the shape of its output.

        Raises
        ------
        ValueError
            If it cannot read this shape.
        """
        return map_of(self, read)

    def weights(self, read: Shape) -> int:
        """Return the number of its weights."""
        return 0

    def macs(self, read: Shape) -> int:
        """Return the multiply-adds of its convolutions and linear layers for one image."""
        return 0


Layers = tuple[LayerSpec, ...]


@dataclass(frozen=True)
class ConvSpec(LayerSpec):
    """A convolution, depthwise without ``filters``; its padding keeps the map's size but for strides."""

    r: int
    s: int
    filters: int | None
    stride: int = 1
    groups: int = 1
    dilation: int = 1

    def __str__(self) -> str:
        size = f"{self.r}x{self.s}"
        name = f"dw{size}" if self.filters is None else f"conv{size}-{self.filters}"
        return name + _suffix("/", self.stride) + _suffix("g", self.groups) + _suffix("d", self.dilation)

    @property
    def padding(self) -> tuple[int, int]:
        """Rows above and below, columns left and right."""
        return self.dilation * (self.r // 2), self.dilation * (self.s // 2)

    def written(self, read: Shape) -> Shape:
        """Return the shape of its output; raises as :meth:`LayerSpec.written`."""
        c, h, w = map_of(self, read)
        if not (self.r % 2 and self.s % 2):
            raise ValueError(f"{str(self)!r}: the sizes of a kernel are odd, so that padding is even")
        if self.dilation > 1 and self.r == self.s == 1:
            raise ValueError(f"{str(self)!r}: a kernel of one weight has nothing to dilate")
        for count, what in ((c, "channels that it reads"), (self.filters or c, "filters")):
            if count % self.groups:
                raise ValueError(f"{str(self)!r}: {self.groups} groups do not divide {count} {what}")
        if self.filters == c == self.groups and c > 1:
            raise ValueError(f"{str(self)!r} is depthwise here: write 'dw{self.r}x{self.s}'")
        return self.filters or c, math.ceil(h / self.stride), math.ceil(w / self.stride)

    def weights(self, read: Shape) -> int:
        """Return the number of its weights."""
        return (self.filters or 1) * read[0] // self.groups * self.r * self.s

    def macs(self, read: Shape) -> int:
        """Return its multiply-adds for one image."""
        return self.weights(read) * math.prod(self.written(read)[1:])


@dataclass(frozen=True)
class PoolSpec(LayerSpec):
    """Maximum or average pooling; an odd window is padded, an even one at most as large as the map."""

    kind: str
    size: int
    stride: int = 1

    def __str__(self) -> str:
        return f"{self.kind}{self.size}" + _suffix("/", self.stride)

    @property
    def padding(self) -> int:
        """Pixels on each side."""
        return self.size // 2 if self.size % 2 else 0

    def window(self, read: Shape) -> tuple[int, int]:
        """Return height and width of the window on a map."""
        return (self.size, self.size) if self.size % 2 else (min(self.size, read[1]), min(self.size, read[2]))

    def written(self, read: Shape) -> Shape:
        """Return the shape of its output; raises as :meth:`LayerSpec.written`."""
        c, h, w = map_of(self, read)
        sides = zip((h, w), self.window(read), strict=True)
        p, q = ((n + 2 * self.padding - size) // self.stride + 1 for n, size in sides)
        return c, p, q


@dataclass(frozen=True)
class AdaptivePoolSpec(LayerSpec):
    """Average pooling to ``size`` by ``size``, or to the largest smaller map that divides its own evenly.

    Not every runtime can compute windows of uneven sizes.
    """

    size: int

    def __str__(self) -> str:
        return f"adaptive{self.size}"

    def written(self, read: Shape) -> Shape:
        """Return the shape of its output; raises as :meth:`LayerSpec.written`."""
        c, h, w = map_of(self, read)
        p, q = (max(each for each in range(1, self.size + 1) if n % each == 0) for n in (h, w))
        return c, p, q


@dataclass(frozen=True)
class NormSpec(LayerSpec):
    """Batch norm."""

    def __str__(self) -> str:
        return "bn"

    def weights(self, read: Shape) -> int:
        """Return the number of its weights."""
        return 4 * read[0]


@dataclass(frozen=True)
class ActivationSpec(LayerSpec):
    """One of :data:`ACTIVATIONS`."""

    name: str

    def __str__(self) -> str:
        return self.name

    def written(self, read: Shape) -> Shape:
        """Return the shape that it reads."""
        return read


@dataclass(frozen=True)
class ShuffleSpec(LayerSpec):
    """The channels of several groups dealt out in turn (ShuffleNet)."""

    groups: int

    def __str__(self) -> str:
        return f"shuffle{self.groups}"

    def written(self, read: Shape) -> Shape:
        """Return the shape that it reads; raises as :meth:`LayerSpec.written`."""
        shape = map_of(self, read)
        if self.groups < 2 or shape[0] % self.groups:
            raise ValueError(f"{str(self)!r} deals out groups of equal size, and reads {shape[0]} channels")
        return shape


@dataclass(frozen=True)
class LinearSpec(LayerSpec):
    """A linear layer, which reads a map as one row of numbers, and of tokens each by itself."""

    features: int

    def __str__(self) -> str:
        return f"linear-{self.features}"

    def written(self, read: Shape) -> Shape:
        """Return the shape of its output."""
        if isinstance(read, Last):
            return read._replace(c=self.features)
        return (read[0], self.features) if are_tokens(read) else (self.features,)

    def reads(self, read: Shape) -> int:
        """Return how many numbers it reads at a time."""
        return read[-1] if are_tokens(read) else math.prod(read)

    def weights(self, read: Shape) -> int:
        """Return the number of its weights."""
        return self.reads(read) * self.features

    def macs(self, read: Shape) -> int:
        """Return its multiply-adds for one image."""
        return math.prod(read) * self.features


def text(layers: Layers) -> str:
    """Return the list of layers as a text, of which there is only one for the same list."""
    return ",".join(map(str, layers))


def written(layers: Layers, read: Shape) -> Shape:
    """Return the shape of a list's output; raises as :meth:`LayerSpec.written`."""
    for layer in layers:
        read = layer.written(read)
    return read


def weights(layers: Layers, read: Shape) -> int:
    """Return the number of a list's weights."""
    total = 0
    for layer in layers:
        total, read = total + layer.weights(read), layer.written(read)
    return total


def macs(layers: Layers, read: Shape) -> int:
    """Return a list's multiply-adds for one image."""
    total = 0
    for layer in layers:
        total, read = total + layer.macs(read), layer.written(read)
    return total


def shown(shape: Shape) -> str:
    """Return a shape as ``64x7x7``."""
    return "x".join(map(str, shape))


def map_of(layer: LayerSpec, read: Shape) -> tuple[int, int, int]:
    """Return the sizes of the map that a layer reads.

    Raises
    ------
    ValueError
        If it is none.
    """
    if are_tokens(read):
        raise ValueError(f"{str(layer)!r} reads a map, and layers before it have made tokens of that")
    if len(read) != 3:
        raise ValueError(f"{str(layer)!r} reads a map, and a linear layer before it has left none")
    return read[0], read[1], read[2]


def are_tokens(read: Shape) -> bool:
    """Return whether a shape is of tokens, whose last size is how many numbers each has."""
    return len(read) == 2 or isinstance(read, Last)


def _suffix(mark: str, value: int) -> str:
    return f"{mark}{value}" if value > 1 else ""
