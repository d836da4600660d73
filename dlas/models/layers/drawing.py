"""Draw lists of layers: about 24, of the kinds and sizes that real networks have, and between them.

Half of all sizes are those of real networks, half are any in a range that is a little wider
(MIRAGE, section 4.2).  The ranges are those of torchvision's classification networks.
"""

from __future__ import annotations

import random

from dlas.models.layers.kinds import (
    Activation,
    AdaptivePool,
    Add,
    Cat,
    Conv,
    Layer,
    Layers,
    Linear,
    Norm,
    Pool,
)

FEWEST, MOST = 16, 23
"""Layers of a list, those inside of others and the joints counted, before its head."""
SIDE = 224
"""Of the images that sizes are meant for; smaller ones only make maps smaller."""
MOST_MACS = 300_000_000
"""Multiply-adds of a convolution for one such image, more than nearly all of real networks have."""
MOST_LINEAR_WEIGHTS = 8_000_000
CHANNELS = (16, 24, 32, 40, 48, 64, 80, 96, 112, 128, 160, 192, 224, 256, 320, 384, 512, 640, 768, 1024, 1280)
"""Of real networks."""
FEWEST_CHANNELS, MOST_CHANNELS = 8, 1400
KERNELS = ((1, 1), (3, 3), (5, 5), (7, 7), (1, 3), (3, 1), (1, 7), (7, 1))
KERNEL_WEIGHTS = (8, 10, 4, 2, 1, 1, 1, 1)
GROUPS = (2, 4, 8, 16, 32)
ACTIVATION_NAMES = ("relu", "relu6", "hardswish", "silu", "gelu", "sigmoid", "hardsigmoid", "elu", "tanh")
ACTIVATION_WEIGHTS = (50, 12, 10, 10, 5, 4, 3, 3, 3)
FEATURES = (128, 256, 512, 1024, 1280, 2048, 4096)
"""Of real networks' linear layers before the last one."""


def draw(dice: random.Random) -> Layers:
    """Return a list of layers at random, valid for images of every size and number of channels."""
    return _Drawing(dice).layers()


class _Drawing:
    """A list under way: its layers so far, and the map that they write for an image of :data:`SIDE`."""

    def __init__(self, dice: random.Random) -> None:
        self.dice = dice
        self.channels, self.side = 3, SIDE
        self.normalised = dice.random() < 0.75
        self.usual = dice.choices(ACTIVATION_NAMES, ACTIVATION_WEIGHTS)[0]

    def layers(self) -> Layers:
        """Return a stem, blocks of several kinds, and sometimes linear layers."""
        most = self.dice.randint(FEWEST, MOST)
        layers = [*self.stem()]
        blocks = (self.plain, self.plain, self.separable, self.inverted, self.residual, self.bottleneck,
                  self.inception, self.fire, self.dense, self.pool)  # fmt: skip
        while count(layers) < most:
            layers += self.dice.choice(blocks)()
        return (*layers, *(self.head() if self.dice.random() < 0.4 else ()))

    def stem(self) -> Layers:
        """Return the first convolution, in half of all lists with pooling behind it."""
        size = self.dice.choice((3, 3, 3, 5, 7))
        stride = self.dice.choice((1, 2, 2, 2))
        layers = self.block(Conv(size, size, self.filters(size * size, stride=stride, most=96), stride))
        return (*layers, Pool("max", 3, self.shrink(2))) if self.dice.random() < 0.5 else layers

    def plain(self) -> Layers:
        """Return a convolution of any kind."""
        r, s = self.dice.choices(KERNELS, KERNEL_WEIGHTS)[0]
        stride = self.stride()
        possible = [groups for groups in GROUPS if self.channels % groups == 0 and groups < self.channels]
        groups = self.dice.choice(possible) if possible and self.dice.random() < 0.25 else 1
        filters = self.filters(r * s / groups, stride=stride, multiple=groups)
        if groups == filters:  # a filter a group: as many filters as two have
            filters *= 2
        return self.block(Conv(r, s, filters, stride, groups))

    def separable(self) -> Layers:
        """Return a depthwise convolution, then one across channels (MobileNetV1)."""
        depthwise = self.block(self.depthwise(self.stride()))
        return (*depthwise, *self.block(Conv(1, 1, self.filters(1))))

    def inverted(self) -> Layers:
        """Return expansion, depthwise convolution and projection, added to their input (MobileNetV2)."""
        width = self.channels
        expanded = self.block(Conv(1, 1, self.filters(1, most=6 * width)))
        depthwise = self.block(self.depthwise(1))
        return (Add((*expanded, *depthwise, *self.block(Conv(1, 1, width), active=False))),)

    def residual(self) -> Layers:
        """Return two convolutions of 3x3, added to their input (ResNet-18)."""
        width = self.channels
        first = self.block(Conv(3, 3, self.filters(9)))
        second = self.block(Conv(3, 3, width), active=False)
        return (Add((*first, *second)), self.activation())

    def bottleneck(self) -> Layers:
        """Return 1x1, 3x3, sometimes of groups, and 1x1, added to their input (ResNet-50, ResNeXt)."""
        width = self.channels
        groups = self.dice.choice((1, 1, *GROUPS))
        inner = self.filters(1, most=max(64, width // 2), multiple=2 * groups)
        narrow = self.block(Conv(1, 1, inner))
        middle = self.block(Conv(3, 3, self.filters(9 / groups, most=inner, multiple=2 * groups), 1, groups))
        return (Add((*narrow, *middle, *self.block(Conv(1, 1, width), active=False))), self.activation())

    def inception(self) -> Layers:
        """Return branches of several kernels side by side (GoogLeNet)."""
        read, written = self.channels, 0
        branches: list[Layers] = []
        for size in self.dice.sample((1, 3, 5, 0), self.dice.choice((2, 3))):
            self.channels = read
            pooled = Pool(self.dice.choice(("max", "avg")), 3)
            first: Layers = (pooled,) if size == 0 else ()
            if size > 1:
                first = self.block(Conv(1, 1, self.filters(1, most=128)))
            side = max(size, 1)
            branches.append((*first, *self.block(Conv(side, side, self.filters(side * side, most=256)))))
            written += self.channels
        self.channels = written
        return (Cat(tuple(branches)),)

    def fire(self) -> Layers:
        """Return a squeezing 1x1, then 1x1 and 3x3 side by side (SqueezeNet)."""
        squeezed = self.block(Conv(1, 1, self.filters(1, most=64)))
        narrow = self.channels
        one = self.block(Conv(1, 1, self.filters(1, most=256)))
        written, self.channels = self.channels, narrow
        three = self.block(Conv(3, 3, self.filters(9, most=256)))
        self.channels += written
        return (*squeezed, Cat((one, three)))

    def dense(self) -> Layers:
        """Return a few new channels beside those that it reads (DenseNet)."""
        filters = self.filters(9, most=64)
        self.channels += filters
        return (Cat(((), (Norm(), self.activation(), Conv(3, 3, filters)))),)

    def pool(self) -> Layers:
        """Return a pooling that halves the map, unless that is small already."""
        if self.side <= 7:
            return (Pool(self.dice.choice(("max", "avg")), 3),)
        size = self.dice.choice((2, 3, 3))
        return (Pool(self.dice.choice(("max", "max", "avg")), size, self.shrink(2)),)

    def head(self) -> Layers:
        """Return pooling to a small map, and one or two linear layers."""
        size = self.dice.choice((1, 1, 2, 3, 4, 6, 7))
        layers: list[Layer] = [AdaptivePool(size)]
        read = self.channels * size * size
        for _ in range(self.dice.choice((1, 1, 2))):
            most = max(16, MOST_LINEAR_WEIGHTS // read)
            read = min(most, self.either([each for each in FEATURES if each <= most] or [most], 16, 4500))
            layers += [Linear(read), self.activation()]
        return tuple(layers)

    def depthwise(self, stride: int) -> Conv:
        """Return a depthwise convolution."""
        size = self.dice.choice((3, 3, 3, 5, 5, 7))
        return Conv(size, size, None, self.shrink(stride))

    def block(self, conv: Conv, active: bool = True) -> Layers:
        """Return a convolution with the network's batch norm, if any, and activation; note what it writes."""
        self.channels = conv.filters or self.channels
        if conv.filters:
            self.shrink(conv.stride)
        norm = (Norm(),) if self.normalised else ()
        return (conv, *norm, *((self.activation(),) if active else ()))

    def activation(self) -> Activation:
        """Return the network's usual activation, or another."""
        other = self.dice.random() < 0.2
        return Activation(self.dice.choices(ACTIVATION_NAMES, ACTIVATION_WEIGHTS)[0] if other else self.usual)

    def stride(self) -> int:
        """Return 2 for about every other convolution, until maps are small."""
        return 2 if self.side > 7 and self.dice.random() < 0.5 else 1

    def shrink(self, stride: int) -> int:
        """Note that the map gets smaller, and return the stride."""
        self.side = -(-self.side // stride)
        return stride

    def filters(self, taps: float, stride: int = 1, most: int = MOST_CHANNELS, multiple: int = 1) -> int:
        """Return a number of filters with which a convolution stays within :data:`MOST_MACS`."""
        side = -(-self.side // stride)
        afforded = int(MOST_MACS / (side * side * self.channels * taps))
        most = max(FEWEST_CHANNELS, min(most, afforded))
        real = [each for each in CHANNELS if each <= most] or [most]
        found = min(most, self.either(real, FEWEST_CHANNELS, most))
        return max(multiple, found // multiple * multiple)

    def either(self, real: list[int], least: int, most: int) -> int:
        """Return a size of real networks, or any in a range."""
        return self.dice.choice(real) if self.dice.random() < 0.5 else self.dice.randint(least, most)


def count(layers: Layers | list[Layer]) -> int:
    """Return the number of layers, those inside of others and the joints counted."""
    total = 0
    for layer in layers:
        inside = (layer.body,) if isinstance(layer, Add) else layer.branches if isinstance(layer, Cat) else ()
        total += 1 + sum(map(count, inside))
    return total
