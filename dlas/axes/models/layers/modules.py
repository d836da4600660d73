"""Make torch modules of a list of layers."""

from __future__ import annotations

import math
from collections import OrderedDict

import torch
from torch import nn

from dlas.axes.models.layers.joints import Add, Cat, Halves, Mul
from dlas.axes.models.layers.kinds import (
    ACTIVATIONS,
    ActivationSpec,
    AdaptivePoolSpec,
    ConvSpec,
    Layers,
    LayerSpec,
    LinearSpec,
    NormSpec,
    PoolSpec,
    Shape,
    ShuffleSpec,
    weights,
    written,
)

MOST_WEIGHTS = 200_000_000
MOST_VALUES = 2**28
"""Values of the largest tensor of one image."""
Made = tuple[str, nn.Module]


class Residual(nn.Module):
    """The sum of what it reads and of what its layers make of that."""

    def __init__(self, body: nn.Module) -> None:
        super().__init__()
        self.body = body

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Map [n, c, h, w] to [n, c, h, w]."""
        y: torch.Tensor = self.body(x)
        return x + y


class Product(nn.Module):
    """The product of what it reads and of what its layers make of that."""

    def __init__(self, body: nn.Module) -> None:
        super().__init__()
        self.body = body

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Map [n, c, h, w] to [n, c, h, w]."""
        y: torch.Tensor = self.body(x)
        return x * y


class HalvesModule(nn.Module):
    """Half of the channels beside what its layers make of the other half."""

    def __init__(self, body: nn.Module) -> None:
        super().__init__()
        self.body = body

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Map [n, c, h, w] to [n, c / 2 and those of the layers, h, w]."""
        kept, given = x.chunk(2, dim=1)
        return torch.cat([kept, self.body(given)], dim=1)


class ShuffleModule(nn.Module):
    """The channels of several groups dealt out in turn."""

    def __init__(self, groups: int) -> None:
        super().__init__()
        self.groups = groups

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Map [n, c, h, w] to [n, c, h, w]."""
        n, c, h, w = x.shape
        return x.view(n, self.groups, c // self.groups, h, w).transpose(1, 2).reshape(n, c, h, w)


class Branches(nn.Module):
    """The channels of several branches side by side."""

    def __init__(self, branches: list[nn.Module]) -> None:
        super().__init__()
        self.branches = nn.ModuleList(branches)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Map [n, c, h, w] to [n, c of all branches, h, w]."""
        return torch.cat([branch(x) for branch in self.branches], dim=1)


def network(layers: Layers, shape: Shape, classes: int) -> nn.Sequential:
    """Return the layers, global average pooling where they leave a map, and a linear layer to the classes.

    Raises
    ------
    ValueError
        If they cannot read images of this shape, or are too large.
    """
    after = written(layers, shape)
    features = after[0]
    total = weights(layers, shape) + features * classes
    if total > MOST_WEIGHTS:
        raise ValueError(f"it has {total:,} weights, more than {MOST_WEIGHTS:,}")
    module = _sequence(layers, shape)
    if len(after) == 3:
        module.add_module("pool", nn.AdaptiveAvgPool2d(1))
        module.add_module("flatten", nn.Flatten())
    module.add_module("classes", nn.Linear(features, classes))
    for layer in module.modules():
        if isinstance(layer, nn.Conv2d | nn.Linear):
            # torch's usual weights let signals fade from layer to layer where no batch norm follows.
            nn.init.kaiming_normal_(layer.weight, nonlinearity="relu")
    return module


def _sequence(layers: Layers, shape: Shape) -> nn.Sequential:
    """Return the layers in order, each named after its kind and its place."""
    made: OrderedDict[str, nn.Module] = OrderedDict()
    for place, (layer, following) in enumerate(zip(layers, (*layers[1:], None), strict=False)):
        if math.prod(layer.written(shape)) > MOST_VALUES:
            raise ValueError(f"{str(layer)!r} writes more than {MOST_VALUES:,} values an image")
        name, module = _made(layer, shape, isinstance(following, NormSpec))
        if isinstance(layer, LinearSpec) and len(shape) == 3:
            made[f"flatten{place}"] = nn.Flatten()
        made[f"{name}{place}"] = module
        shape = layer.written(shape)
    return nn.Sequential(made)


def _made(layer: LayerSpec, shape: Shape, normalised: bool) -> Made:
    """Return a layer's kind and its module; a batch norm behind a convolution takes the place of its bias."""
    match layer:
        case ConvSpec():
            return "conv", _convolution(layer, shape[0], bias=not normalised)
        case PoolSpec(kind, _, stride):
            pool = nn.MaxPool2d if kind == "max" else nn.AvgPool2d
            return kind, pool(layer.window(shape), stride, layer.padding)
        case AdaptivePoolSpec():
            return "adaptive", nn.AdaptiveAvgPool2d(layer.written(shape)[1:])
        case NormSpec():
            return "bn", nn.BatchNorm2d(shape[0])
        case ActivationSpec(name):
            return name, ACTIVATIONS[name]()
        case ShuffleSpec(groups):
            return "shuffle", ShuffleModule(groups)
        case LinearSpec(features):
            return "linear", nn.Linear(math.prod(shape), features)
        case Add(body):
            return "add", Residual(_sequence(body, shape))
        case Mul(body):
            return "mul", Product(_sequence(body, shape))
        case Halves(body):
            return "halves", HalvesModule(_sequence(body, layer.inside(shape)))
        case Cat(branches):
            return "cat", Branches([_sequence(branch, shape) for branch in branches])
    raise TypeError(f"{layer} is no layer")


def _convolution(layer: ConvSpec, channels: int, bias: bool) -> nn.Conv2d:
    return nn.Conv2d(
        channels,
        layer.filters or channels,
        (layer.r, layer.s),
        layer.stride,
        layer.padding,
        layer.dilation,
        groups=layer.groups if layer.filters else channels,
        bias=bias,
    )
