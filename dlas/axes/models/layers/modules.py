"""Make torch modules of a list of layers."""

from __future__ import annotations

import math
from collections import OrderedDict

import torch
from torch import nn
from torchvision.models.swin_transformer import ShiftedWindowAttention
from torchvision.ops import Permute

from dlas.axes.models.layers import tokens
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
    are_tokens,
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


class SequenceModule(nn.Module):
    """The pixels of a map one after the other."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Map [n, c, h, w] to [n, h w, c]."""
        return x.flatten(2).transpose(1, 2)


class Positions(nn.Module):
    """A vector for each place, which is added."""

    def __init__(self, places: int, features: int) -> None:
        super().__init__()
        self.vectors = nn.Parameter(0.02 * torch.randn(1, places, features))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Map [n, places, features] to the same."""
        return x + self.vectors


class Scale(nn.Module):
    """A factor for each of a token's numbers."""

    def __init__(self, features: int) -> None:
        super().__init__()
        self.factors = nn.Parameter(torch.ones(features))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Map [..., features] to the same."""
        return x * self.factors


class Merge(nn.Module):
    """Four neighbours side by side in one token; a row or a column that is missing is zero."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Map [n, h, w, c] to [n, h / 2, w / 2, 4 c]."""
        _, h, w, _ = x.shape
        x = nn.functional.pad(x, (0, 0, 0, w % 2, 0, h % 2))
        quarters = [x[:, row::2, column::2] for column in (0, 1) for row in (0, 1)]
        return torch.cat(quarters, -1)


class Attention(nn.Module):
    """Self-attention of all tokens."""

    def __init__(self, features: int, heads: int) -> None:
        super().__init__()
        self.attention = nn.MultiheadAttention(features, heads, batch_first=True)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Map [n, tokens, features] to the same."""
        y: torch.Tensor = self.attention(x, x, x, need_weights=False)[0]
        return y


class MeanToken(nn.Module):
    """The mean over tokens."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Map [n, ..., features] to [n, features]."""
        return x.flatten(1, -2).mean(1)


def network(layers: Layers, shape: Shape, classes: int) -> nn.Sequential:
    """Return the layers, global average pooling where they leave a map, and a linear layer to the classes.

    Raises
    ------
    ValueError
        If they cannot read images of this shape, or are too large.
    """
    after = written(layers, shape)
    features = after[-1] if are_tokens(after) else after[0]
    total = weights(layers, shape) + features * classes
    if total > MOST_WEIGHTS:
        raise ValueError(f"it has {total:,} weights, more than {MOST_WEIGHTS:,}")
    module = _sequence(layers, shape)
    if are_tokens(after):
        module.add_module("pool", MeanToken())
    elif len(after) == 3:
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
        if isinstance(layer, LinearSpec) and len(shape) == 3 and not are_tokens(shape):
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
            return "linear", nn.Linear(layer.reads(shape), features)
        case tokens.PatchSpec(_, filters):
            window = layer.window(shape)
            return "patch", nn.Conv2d(shape[0], filters, window, window)
        case tokens.SequenceSpec():
            return "sequence", SequenceModule()
        case tokens.LastSpec():
            return "last", Permute([0, 2, 3, 1])
        case tokens.FirstSpec():
            return "first", Permute([0, 3, 1, 2])
        case tokens.PositionsSpec():
            return "positions", Positions(*shape)
        case tokens.LayerNormSpec():
            return "ln", nn.LayerNorm(shape[-1])
        case tokens.ScaleSpec():
            return "scale", Scale(shape[-1])
        case tokens.MergeSpec():
            return "merge", Merge()
        case tokens.AttentionSpec(heads, None):
            return "attention", Attention(shape[-1], heads)
        case tokens.AttentionSpec(heads, int(window), shifted):
            shift = [window // 2 if shifted else 0] * 2
            return "attention", ShiftedWindowAttention(shape[-1], [window, window], shift, heads)
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
