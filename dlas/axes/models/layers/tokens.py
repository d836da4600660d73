"""Layers over tokens: a sequence of them, as in ViT, or a map of them with its channels last, as in Swin."""

from __future__ import annotations

import math
from dataclasses import dataclass

from dlas.axes.models.layers.kinds import Last, LayerSpec, Shape, are_tokens, map_of


@dataclass(frozen=True)
class PatchSpec(LayerSpec):
    """A convolution of patches side by side, without padding; a smaller map is one patch."""

    size: int
    filters: int

    def __str__(self) -> str:
        return f"patch{self.size}-{self.filters}"

    def window(self, read: Shape) -> tuple[int, int]:
        """Return height and width of a patch of a map."""
        return min(self.size, read[1]), min(self.size, read[2])

    def written(self, read: Shape) -> Shape:
        """Return the shape of its output; raises as :meth:`LayerSpec.written`."""
        _, h, w = map_of(self, read)
        return self.filters, *(n // size for n, size in zip((h, w), self.window(read), strict=True))

    def weights(self, read: Shape) -> int:
        """Return the number of its weights."""
        return self.filters * read[0] * math.prod(self.window(read))

    def macs(self, read: Shape) -> int:
        """Return its multiply-adds for one image."""
        return self.weights(read) * math.prod(self.written(read)[1:])


@dataclass(frozen=True)
class SequenceSpec(LayerSpec):
    """The pixels of a map one after the other (ViT)."""

    def __str__(self) -> str:
        return "sequence"

    def written(self, read: Shape) -> Shape:
        """Return the shape of its output; raises as :meth:`LayerSpec.written`."""
        c, h, w = map_of(self, read)
        return h * w, c


@dataclass(frozen=True)
class LastSpec(LayerSpec):
    """The channels of a map last (Swin, ConvNeXt)."""

    def __str__(self) -> str:
        return "last"

    def written(self, read: Shape) -> Shape:
        """Return the shape of its output; raises as :meth:`LayerSpec.written`."""
        c, h, w = map_of(self, read)
        return Last(h, w, c)


@dataclass(frozen=True)
class FirstSpec(LayerSpec):
    """The channels of a map first again (ConvNeXt)."""

    def __str__(self) -> str:
        return "first"

    def written(self, read: Shape) -> Shape:
        """Return the shape of its output; raises as :meth:`LayerSpec.written`."""
        h, w, c = last_of(self, read)
        return c, h, w


@dataclass(frozen=True)
class PositionsSpec(LayerSpec):
    """A vector for each place, which is added to its token (ViT)."""

    def __str__(self) -> str:
        return "positions"

    def written(self, read: Shape) -> Shape:
        """Return the shape that it reads; raises as :meth:`LayerSpec.written`."""
        return sequence_of(self, read)

    def weights(self, read: Shape) -> int:
        """Return the number of its weights."""
        return math.prod(read)


@dataclass(frozen=True)
class LayerNormSpec(LayerSpec):
    """Layer norm of each token."""

    def __str__(self) -> str:
        return "ln"

    def written(self, read: Shape) -> Shape:
        """Return the shape that it reads; raises as :meth:`LayerSpec.written`."""
        return tokens_of(self, read)

    def weights(self, read: Shape) -> int:
        """Return the number of its weights."""
        return 2 * read[-1]


@dataclass(frozen=True)
class ScaleSpec(LayerSpec):
    """A factor for each of a token's numbers (ConvNeXt)."""

    def __str__(self) -> str:
        return "scale"

    def written(self, read: Shape) -> Shape:
        """Return the shape that it reads; raises as :meth:`LayerSpec.written`."""
        return tokens_of(self, read)

    def weights(self, read: Shape) -> int:
        """Return the number of its weights."""
        return read[-1]


@dataclass(frozen=True)
class MergeSpec(LayerSpec):
    """Four neighbours side by side in one token (Swin); a row or a column that is missing is zero."""

    def __str__(self) -> str:
        return "merge"

    def written(self, read: Shape) -> Shape:
        """Return the shape of its output; raises as :meth:`LayerSpec.written`."""
        h, w, c = last_of(self, read)
        return Last(math.ceil(h / 2), math.ceil(w / 2), 4 * c)


@dataclass(frozen=True)
class AttentionSpec(LayerSpec):
    """Self-attention of several heads: of a sequence, or within windows of a map, every second one shifted.

    ``window`` is None for a sequence.
    """

    heads: int
    window: int | None = None
    shifted: bool = False

    def __str__(self) -> str:
        window = "" if self.window is None else f"w{self.window}"
        return f"attention{self.heads}{window}{'s' * self.shifted}"

    def written(self, read: Shape) -> Shape:
        """Return the shape that it reads; raises as :meth:`LayerSpec.written`."""
        shape = sequence_of(self, read) if self.window is None else last_of(self, read)
        if shape[-1] % self.heads:
            raise ValueError(
                f"{str(self)!r}: {self.heads} heads do not divide {shape[-1]} numbers of a token"
            )
        return shape

    def weights(self, read: Shape) -> int:
        """Return the number of its weights."""
        return 4 * read[-1] * (read[-1] + 1)

    def macs(self, read: Shape) -> int:
        """Return its multiply-adds for one image, the products of tokens with each other too."""
        *places, numbers = read
        if self.window is None:
            tokens = seen = math.prod(places)
        else:
            seen = self.window**2
            tokens = seen * math.prod(math.ceil(n / self.window) for n in places)
        return tokens * numbers * (4 * numbers + 2 * seen)


def sequence_of(layer: LayerSpec, read: Shape) -> Shape:
    """Return the shape of the sequence that a layer reads.

    Raises
    ------
    ValueError
        If it is none.
    """
    if len(read) != 2:
        raise ValueError(f"{str(layer)!r} reads a sequence of tokens: write 'sequence' before it")
    return read


def last_of(layer: LayerSpec, read: Shape) -> Last:
    """Return the shape of the map that a layer reads, its channels last.

    Raises
    ------
    ValueError
        If it is none.
    """
    if not isinstance(read, Last):
        raise ValueError(f"{str(layer)!r} reads a map with its channels last: write 'last' before it")
    return read


def tokens_of(layer: LayerSpec, read: Shape) -> Shape:
    """Return the shape of the tokens that a layer reads, in a sequence or a map.

    Raises
    ------
    ValueError
        If it is none.
    """
    return read if are_tokens(read) else sequence_of(layer, read)


ALONE = (
    *(SequenceSpec(), LastSpec(), FirstSpec(), MergeSpec()),
    *(PositionsSpec(), LayerNormSpec(), ScaleSpec()),
)
"""Layers that have no numbers."""
