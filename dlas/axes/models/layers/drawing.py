"""Draw lists of layers: about 24, of the kinds and sizes that real networks have, and between them.

Half of the convolutions are those of real networks, half have any sizes in the ranges of those, which reach a
little beyond what was seen (MIRAGE, section 4.2; :mod:`dlas.axes.models.layers.seen`).
"""

from __future__ import annotations

import random
from collections.abc import Callable, Collection

from dlas.axes.models.layers.joints import Add, Cat, Halves, Mul, count
from dlas.axes.models.layers.kinds import (
    ACTIVATIONS,
    ActivationSpec,
    AdaptivePoolSpec,
    Layers,
    LayerSpec,
    LinearSpec,
    NormSpec,
    PoolSpec,
    ShuffleSpec,
)
from dlas.axes.models.layers.sizes import MOST_MACS, SMALLEST, Sizes

FEWEST, MOST = 16, 23
"""Layers of a list, those inside of others and the joints counted, before its head."""
CLASSES = 1000
"""What the multiply-adds of a network are limited for."""
MOST_LINEAR_WEIGHTS = 40_000_000


def draw(dice: random.Random, most_macs: int = MOST_MACS) -> Layers:
    """Return a list of layers at random, valid for images of every size and number of channels."""
    return _Drawing(dice, most_macs).layers()


class _Drawing(Sizes):
    """Makes blocks of layers, as real networks have them."""

    def __init__(self, dice: random.Random, most_macs: int) -> None:
        super().__init__(dice, most_macs)
        self.normalised = dice.random() < 0.75
        self.weights = [1 + self.seen.activations.get(name, 0) for name in ACTIVATIONS]
        self.usual = self.any_activation()

    def layers(self) -> Layers:
        """Return a stem, blocks of several kinds, and sometimes linear layers."""
        most = self.dice.randint(FEWEST, MOST)
        layers = self.stem()
        blocks = (
            *(self.plain, self.plain, self.plain, self.separable, self.inverted, self.excited),
            *(self.residual, self.bottleneck, self.inception, self.fire, self.dense, self.growing),
            *(self.shuffled, self.pool),
        )
        while count(layers) < most:
            layers += self.afforded(self.dice.choice(blocks))
        return (*layers, *(self.head() if self.dice.random() < 0.4 else ()))

    def afforded(self, block: Callable[[], Layers]) -> Layers:
        """Return a block's layers, or pooling where they take more multiply-adds than are left."""
        before = self.shape, self.left, self.real, self.free
        layers = block()
        if self.left >= CLASSES * self.shape[0]:
            return layers
        self.shape, self.left, self.real, self.free = before
        return self.pool()

    def stem(self) -> Layers:
        """Return the first convolution, and pooling that leads to maps as at any depth of a network."""
        layers = self.block("spatial", strides=(1, 2, 2, 4), most=96)
        for _ in range(self.dice.randint(0, 3)):
            layers += self.pool()
        return layers

    def plain(self) -> Layers:
        """Return a convolution of any kind."""
        return self.block("pointwise", "spatial", "spatial", "grouped", strides=self.strides())

    def separable(self) -> Layers:
        """Return a depthwise convolution, then one across channels (MobileNetV1)."""
        return (*self.block("depthwise", strides=self.strides()), *self.block("pointwise"))

    def inverted(self) -> Layers:
        """Return expansion, depthwise convolution and projection, added to their input (MobileNetV2)."""
        width = self.shape[0]
        body = (*self.block("pointwise", most=6 * width), *self.block("depthwise"))
        return (Add((*body, *self.block("pointwise", filters=width, active=False))),)

    def excited(self) -> Layers:
        """Return a depthwise convolution, a product, and a convolution across channels (MobileNetV3)."""
        layers, read = self.block("depthwise", strides=self.strides()), self.shape
        pooled = self.put(AdaptivePoolSpec(1))
        squeezed = (pooled, self.convolution(("pointwise",), most=read[0]), ActivationSpec("relu"))
        gate = ActivationSpec(self.dice.choice(("sigmoid", "hardsigmoid")))
        product = Mul((*squeezed, self.convolution(("pointwise",), filters=read[0]), gate))
        self.shape = read
        return (*layers, product, *self.block("pointwise", active=False))

    def residual(self) -> Layers:
        """Return two convolutions of 3x3, added to their input (ResNet-18)."""
        width = self.shape[0]
        first = self.block("spatial")
        return (Add((*first, *self.block("spatial", filters=width, active=False))), self.activation())

    def bottleneck(self) -> Layers:
        """Return 1x1, 3x3, sometimes of groups, and 1x1, added to their input (ResNet-50, ResNeXt)."""
        width = self.shape[0]
        body = (*self.block("pointwise", most=width), *self.block("spatial", "grouped", most=width))
        return (Add((*body, *self.block("pointwise", filters=width, active=False))), self.activation())

    def inception(self) -> Layers:
        """Return branches of several kernels side by side (GoogLeNet)."""

        def pooled() -> Layers:
            return (
                self.put(PoolSpec(self.dice.choice(("max", "avg")), 3)),
                *self.block("pointwise", most=256),
            )

        def narrow() -> Layers:
            return (*self.block("pointwise", most=128), *self.block("spatial", most=256))

        kinds = (pooled, narrow, narrow, lambda: self.block("pointwise", most=256))
        return (self.side_by_side(*self.dice.sample(kinds, self.dice.choice((2, 3)))),)

    def fire(self) -> Layers:
        """Return a squeezing 1x1, then 1x1 and 3x3 side by side (SqueezeNet)."""
        squeezed = self.block("pointwise", most=64)
        kinds = (lambda: self.block("pointwise", most=256), lambda: self.block("spatial", most=256))
        return (*squeezed, self.side_by_side(*kinds))

    def dense(self) -> Layers:
        """Return a few new channels beside those that it reads (DenseNet)."""

        def new() -> Layers:
            return (NormSpec(), self.activation(), self.convolution(("spatial",), most=64))

        return (self.side_by_side(lambda: (), new),)

    def growing(self) -> Layers:
        """Return a few channels several times beside those that it reads (DenseNet): many are joined."""
        several = self.dice.randint(3, 7)
        new: list[Callable[[], Layers]] = [lambda: (self.convolution(("pointwise",), most=48),)] * several
        return (self.side_by_side(lambda: (), *new),)

    def shuffled(self) -> Layers:
        """Return layers on one half of the channels, which are then dealt out (ShuffleNetV2)."""
        layers = self.block("pointwise", multiple=2)
        whole = self.shape
        self.shape = whole[0] // 2, *whole[1:]
        body = (*self.block("pointwise"), *self.block("depthwise", active=False))
        body = (*body, *self.block("pointwise", filters=whole[0] // 2))
        self.shape = whole
        return (*layers, Halves(body), ShuffleSpec(2))

    def pool(self) -> Layers:
        """Return a pooling, which makes the map smaller unless that is small already."""
        smaller = self.shape[1] > SMALLEST
        kinds = [each for each in self.seen.pools if (each[2] > 1) == smaller]
        return (self.put(PoolSpec(*self.dice.choice(kinds))),)

    def head(self) -> Layers:
        """Return pooling to a small map, and one or two linear layers."""
        layers: list[LayerSpec] = [self.put(AdaptivePoolSpec(self.dice.choice((1, 1, 2, 3, 4, 6, 7))))]
        for _ in range(self.dice.choice((1, 1, 2))):
            read = self.shape[0] * (self.shape[1] ** 2 if len(self.shape) == 3 else 1)
            most = min(MOST_LINEAR_WEIGHTS, self.left) // (read + CLASSES)
            real = [outputs for _, outputs in self.seen.linear if outputs <= most]
            real_one = bool(real) and self.dice.random() < 0.5
            features = self.dice.choice(real) if real_one else self.seen.features.draw(self.dice, most)
            layers += [self.put(LinearSpec(max(1, features))), self.activation()]
        return tuple(layers)

    def block(
        self,
        *kinds: str,
        filters: int | None = None,
        strides: Collection[int] = (1,),
        most: int | None = None,
        multiple: int = 1,
        active: bool = True,
    ) -> Layers:
        """Return a convolution of one of some kinds, with the network's batch norm and an activation."""
        conv = self.convolution(kinds, filters, strides, most, multiple)
        norm = (NormSpec(),) if self.normalised else ()
        return (conv, *norm, *((self.activation(),) if active else ()))

    def side_by_side(self, *branches: Callable[[], Layers]) -> Cat:
        """Return branches that all read what comes here."""
        read, total, made = self.shape, 0, []
        for branch in branches:
            self.shape = read
            made.append(branch())
            total += self.shape[0]
        self.shape = (total, *self.shape[1:])
        return Cat(tuple(made))

    def activation(self) -> ActivationSpec:
        """Return the network's usual activation, or another."""
        return self.any_activation() if self.dice.random() < 0.2 else self.usual

    def any_activation(self) -> ActivationSpec:
        """Return an activation, those of many networks more often."""
        return ActivationSpec(self.dice.choices([*ACTIVATIONS], self.weights)[0])
