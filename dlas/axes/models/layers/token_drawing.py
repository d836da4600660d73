"""Draw lists of layers over tokens: networks like ViT, Swin and ConvNeXt, of other sizes than these have."""

from __future__ import annotations

import math
import random

from dlas.axes.models.layers import tokens
from dlas.axes.models.layers.joints import Add, count
from dlas.axes.models.layers.kinds import ActivationSpec, ConvSpec, Layers, LayerSpec, LinearSpec
from dlas.axes.models.layers.sizes import IMAGE, Kind

MOST_MACS = 1_000_000_000
"""Multiply-adds of a network for one image of 224 by 224, unless more are asked for: a block of ViT-B takes
1.4 thousand million."""
FEWEST, MOST = 20, 40
"""Layers of a list, those inside of others and the joints counted."""
WIDTHS = (32, 1024)
"""Numbers of a token."""
HEADS = (16, 24, 32, 40, 48, 64, 80)
"""Numbers of a head."""
REAL = frozenset((96, 192, 384, 768))
"""Numbers of a token in ViT-B, Swin-T and ConvNeXt-T, which are not drawn, so that these can be tried."""
EXPANSIONS = (2, 3, 4, 4, 4)
"""What the hidden layer of a block has, over a token."""


def draw(dice: random.Random, most_macs: int = MOST_MACS) -> Layers:
    """Return a list of layers at random, valid for images of every size and number of channels."""
    return _Drawing(dice, most_macs).layers()


class _Drawing:
    """A list under way: the shape that it writes for :data:`IMAGE`, and the multiply-adds that are left."""

    def __init__(self, dice: random.Random, most_macs: int) -> None:
        self.dice, self.shape, self.left = dice, IMAGE, most_macs
        self.active = dice.choice(("gelu", "gelu", "gelu", "relu", "silu"))

    def layers(self) -> Layers:
        """Return a network of one of three families."""
        family = self.dice.choice((self.sequence, self.windows, self.convolutions))
        return family(self.dice.randint(FEWEST, MOST))

    def sequence(self, most: int) -> Layers:
        """Return patches and blocks of attention among all of them (ViT)."""
        heads, width = self.heads()
        layers: Layers = (
            self.put(tokens.PatchSpec(self.dice.choice((8, 14, 16, 16, 20, 28, 30)), width)),
            *(self.put(each) for each in (tokens.SequenceSpec(), tokens.PositionsSpec())),
        )
        while count(layers) < most:
            block = (self.attention(tokens.AttentionSpec(heads)), self.hidden())
            if self.left < 0:
                break
            layers += block
        return (*layers, tokens.LayerNormSpec())

    def windows(self, most: int) -> Layers:
        """Return stages of attention within windows, each on a quarter of the tokens before (Swin)."""
        heads, width = self.heads(256)
        layers: Layers = (
            self.put(tokens.PatchSpec(self.dice.choice((4, 8)), width)),
            *(self.put(each) for each in (tokens.LastSpec(), tokens.LayerNormSpec())),
        )
        window = self.dice.choice((4, 5, 7, 7, 8, 10))
        while count(layers) < most:
            for shifted in (False, True):
                layers += (self.attention(tokens.AttentionSpec(heads, window, shifted)), self.hidden())
            if self.left < 0 or min(self.shape[:2]) <= 3:
                break
            if self.dice.random() < 0.7:
                heads, width = 2 * heads, self.unlike(2 * self.shape[-1], 2 * heads)
                layers += tuple(
                    self.put(each) for each in (tokens.MergeSpec(), tokens.LayerNormSpec(), LinearSpec(width))
                )
        return (*layers, tokens.LayerNormSpec())

    def convolutions(self, most: int) -> Layers:
        """Return stages of depthwise convolutions and linear layers (ConvNeXt)."""
        width = self.unlike(self.width(256), 1)
        stem = (
            tokens.PatchSpec(self.dice.choice((4, 4, 8)), width),
            tokens.LastSpec(),
            tokens.LayerNormSpec(),
            tokens.FirstSpec(),
        )
        layers: Layers = tuple(map(self.put, stem))
        side = self.dice.choice((3, 5, 7, 7, 9))
        while count(layers) < most:
            layers += (self.mixed(side),)
            if self.left < 0 or min(self.shape[1:]) <= 3:
                break
            if self.dice.random() < 0.4:
                width = self.unlike(2 * self.shape[0], 1)
                smaller = (
                    tokens.LastSpec(),
                    tokens.LayerNormSpec(),
                    tokens.FirstSpec(),
                    tokens.PatchSpec(2, width),
                )
                layers += tuple(map(self.put, smaller))
        return layers

    def attention(self, spec: tokens.AttentionSpec) -> LayerSpec:
        """Return attention between tokens, added to what it reads."""
        return self.put(Add((tokens.LayerNormSpec(), spec)))

    def hidden(self) -> LayerSpec:
        """Return two linear layers of each token, added to what they read."""
        return self.put(Add((tokens.LayerNormSpec(), *self.perceptron(self.shape[-1]))))

    def mixed(self, side: int) -> LayerSpec:
        """Return a depthwise convolution and two linear layers of each pixel, added to what they read."""
        inside = (*self.perceptron(self.shape[0]), tokens.ScaleSpec(), tokens.FirstSpec())
        return self.put(Add((ConvSpec(side, side, None), tokens.LastSpec(), tokens.LayerNormSpec(), *inside)))

    def perceptron(self, width: int) -> Layers:
        """Return two linear layers."""
        wide = self.dice.choice(EXPANSIONS) * width
        return LinearSpec(wide), ActivationSpec(self.active), LinearSpec(width)

    def heads(self, most: int = WIDTHS[1]) -> tuple[int, int]:
        """Return a number of heads, and of numbers of a token."""
        numbers = self.dice.choice(HEADS)
        heads = max(1, round(self.width(most) / numbers))
        return heads, self.unlike(heads * numbers, heads)

    def width(self, most: int) -> int:
        """Return numbers of a token, as likely as their half and their double."""
        return round(math.exp(self.dice.uniform(math.log(WIDTHS[0]), math.log(most))))

    def unlike(self, width: int, multiple: int) -> int:
        """Return a width that real networks do not have, a multiple of some number."""
        return width + multiple * (width in REAL)

    def put(self, layer: Kind) -> Kind:
        """Return a layer, and note what it takes and writes."""
        self.left -= layer.macs(self.shape)
        self.shape = layer.written(self.shape)
        return layer
