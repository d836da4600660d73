"""Subnetworks as torch modules."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence

import torch
from torch import nn

from dlas.networks.subnets.blocks import TablePart
from dlas.networks.subnets.shapes import Block, Shapes, SquareConv
from dlas.networks.subnets.written import Stage

Named = list[tuple[str, nn.Module]]


class Gate(nn.Module):
    """Squeeze-and-excitation: a number between 0 and 1 for each channel, which multiplies it.

    Parameters
    ----------
    channels : int
    squeezed : int
        Channels between its two convolutions.
    """

    def __init__(self, channels: int, squeezed: int) -> None:
        super().__init__()
        self.pool = nn.AdaptiveAvgPool2d(1)
        self.squeeze = nn.Conv2d(channels, squeezed, 1)
        self.relu = nn.ReLU()
        self.excite = nn.Conv2d(squeezed, channels, 1)
        self.sigmoid = nn.Hardsigmoid()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Map [n, c, h, w] to [n, c, h, w]."""
        y: torch.Tensor = self.sigmoid(self.excite(self.relu(self.squeeze(self.pool(x)))))
        return x * y


class SubnetBlock(nn.Module):
    """A block of a subnetwork.

    Parameters
    ----------
    block : Block
    """

    def __init__(self, block: Block) -> None:
        super().__init__()
        layers: Named = []
        if block.expands:
            layers += _conv("expand", SquareConv(block.read, block.middle, 1), block.swish)
        layers += _conv("depthwise", block.depthwise, block.swish)
        if block.gated:
            layers.append(("gate", Gate(block.middle, block.squeezed)))
        layers += _conv("project", SquareConv(block.middle, block.written, 1))
        self.body = nn.Sequential(OrderedDict(layers))
        self.skips = block.skips

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Map [n, read, h, w] to [n, written, h / stride, w / stride]."""
        y: torch.Tensor = self.body(x)
        return x + y if self.skips else y


class FlatOutput(nn.Module):
    """A module whose output is one row of numbers an image.

    Parameters
    ----------
    body : torch.nn.Module
    """

    def __init__(self, body: nn.Module) -> None:
        super().__init__()
        self.body = body

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Map [n, c, h, w] to [n, values]."""
        y: torch.Tensor = self.body(x)
        return y.flatten(1)


def subnet(shapes: Shapes, stages: Sequence[Stage], channels: int, classes: int) -> nn.Sequential:
    """Return a subnetwork with random weights, for images of some channels."""
    blocks = OrderedDict((f"block{at}", SubnetBlock(each)) for at, each in enumerate(shapes.blocks(stages)))
    layers: Named = [
        *stem(shapes, channels),
        ("first", SubnetBlock(shapes.first)),
        *blocks.items(),
        *expanded(shapes),
        ("pool", nn.AdaptiveAvgPool2d(1)),
        *features(shapes),
        ("flatten", nn.Flatten()),
        ("classes", nn.Linear(shapes.features, classes)),
    ]
    return nn.Sequential(OrderedDict(layers))


def stem(shapes: Shapes, channels: int) -> Named:
    """Return the first convolution with its norm and activation."""
    return _conv("stem", SquareConv(channels, shapes.stem, 3, shapes.strides[0]), swish=True)


def expanded(shapes: Shapes) -> Named:
    """Return the 1x1 convolution before the global pooling."""
    return _conv("expand", SquareConv(shapes.channels[-1], shapes.expanded, 1), swish=True)


def features(shapes: Shapes) -> Named:
    """Return the 1x1 convolution behind the global pooling, which has no norm."""
    return [
        ("features", nn.Conv2d(shapes.expanded, shapes.features, 1, bias=False)),
        ("features_activation", nn.Hardswish()),
    ]


def _conv(name: str, shape: SquareConv, swish: bool | None = None) -> Named:
    """Return a convolution, its norm, and h-swish or ReLU; no activation where ``swish`` is None."""
    around = shape.kernel // 2
    conv = nn.Conv2d(shape.c, shape.k, shape.kernel, shape.stride, around, groups=shape.groups, bias=False)
    layers: Named = [(name, conv), (f"{name}_norm", nn.BatchNorm2d(shape.k))]
    if swish is not None:
        layers.append((f"{name}_activation", nn.Hardswish() if swish else nn.ReLU()))
    return layers


def part(known: TablePart) -> nn.Module:
    """Return what a name in a table of latencies stands for, with random weights."""
    if known.block is not None:
        return SubnetBlock(known.block)
    (c, height, _), (k, out, _) = known.read, known.written
    if known.kind == "AvgPool2D":
        return nn.AdaptiveAvgPool2d(out)
    if known.kind == "Logits":
        return nn.Sequential(
            OrderedDict([("flatten", nn.Flatten()), ("classes", nn.Linear(c * height**2, k))])
        )
    if known.kind == "Conv_2":
        return nn.Sequential(
            OrderedDict([("features", nn.Conv2d(c, k, 1, bias=False)), ("activation", nn.Hardswish())])
        )
    kernel = 3 if known.kind == "Conv" else 1
    conv = SquareConv(c, k, kernel, -(-height // out))
    return nn.Sequential(OrderedDict(_conv("conv", conv, swish=True)))
