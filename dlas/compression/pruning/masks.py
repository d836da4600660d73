"""Which weights to prune: what they are worth, the masks that say so, and what keeps zeros at zero."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import ClassVar, Literal, Protocol

import numpy as np
import torch
from torch import nn
from torch.nn import functional

from dlas.errors import Unsupported
from dlas.networks.torch_network import conv_weights
from dlas.stack import Data

Scope = Literal["global", "layer"]
Criterion = Literal["l1", "taylor", "random"]
Masks = dict[str, torch.Tensor]
"""By the layer's name, whether a weight [k, c / groups, r, s] stays."""

TAYLOR_IMAGES = 512
TAYLOR_BATCH = 64


class Units(Protocol):
    """What is pruned as a whole: a weight, a filter, a block.

    Attributes
    ----------
    relative : bool
        Whether a sum of absolute weights is worth what it is beside the mean of its convolution.
    """

    relative: ClassVar[bool]

    def takes(self, conv: nn.Conv2d) -> bool:
        """Return whether this convolution is pruned at all."""
        ...

    def gather(self, values: torch.Tensor, conv: nn.Conv2d) -> torch.Tensor:
        """Return the sums over each unit of values [k, c / groups, r, s]."""
        ...

    def scatter(self, units: torch.Tensor, conv: nn.Conv2d) -> torch.Tensor:
        """Return values [k, c / groups, r, s] from one value a unit, as :meth:`gather` shapes them."""
        ...


def masks(
    module: nn.Module,
    units: Units,
    level: float,
    scope: Scope,
    worth: Mapping[str, torch.Tensor],
) -> Masks:
    """Return what to keep of a module's convolutions.

    Parameters
    ----------
    module : torch.nn.Module
    units : Units
    level : float
        Share of the units to prune; those that are zero already are among them.
    scope : {"global", "layer"}
        Compare all units of the network with one another, or those of each convolution.
    worth : mapping
        What each unit is worth, by layer; see :func:`judge`.
    """
    alive = {name: _alive(conv, units) for name, conv in prunable(module, units).items()}
    if scope == "layer":
        kept = {name: _keep(worth[name], alive[name], level) for name in alive}
    else:
        flat = _keep(_flat(worth, alive), _flat(alive, alive), level)
        pieces = flat.split([mask.numel() for mask in alive.values()])
        kept = {name: piece.view_as(alive[name]) for name, piece in zip(alive, pieces, strict=True)}
    convolutions = prunable(module, units)
    return {name: units.scatter(kept[name], convolutions[name]) for name in kept}


def prunable(module: nn.Module, units: Units) -> dict[str, nn.Conv2d]:
    """Return the convolutions that are pruned, by name.

    Raises
    ------
    Unsupported
        If there is none.
    """
    found = {
        name: layer
        for name, layer in module.named_modules()
        if isinstance(layer, nn.Conv2d) and units.takes(layer)
    }
    if not found:
        raise Unsupported("the network has no convolution that this technique prunes")
    return found


@torch.no_grad()
def apply(module: nn.Module, kept: Masks) -> None:
    """Set the module's pruned weights to zero."""
    weights = conv_weights(module)
    for name, mask in kept.items():
        weights[name].masked_fill_(~mask, 0)


def keep_zeros(module: nn.Module) -> Callable[[nn.Module], None]:
    """Return what sets the convolution weights that are zero now to zero again after a step of training.

    So what an earlier technique of a chain has pruned stays pruned, too.
    """
    zeros = {name: weight.detach() == 0 for name, weight in conv_weights(module).items()}

    @torch.no_grad()
    def again(trained: nn.Module) -> None:
        for name, weight in conv_weights(trained).items():
            zeros[name] = zeros[name].to(weight.device)
            weight.masked_fill_(zeros[name], 0)

    return again


def share_pruned(module: nn.Module, units: Units) -> float:
    """Return the share of the units that is zero."""
    alive = [_alive(conv, units) for conv in prunable(module, units).values()]
    return 1 - sum(int(each.sum()) for each in alive) / sum(each.numel() for each in alive)


# ---------------------------------------------------------------- what a unit is worth


def judge(
    module: nn.Module, units: Units, criterion: Criterion, data: Data, seed: int
) -> dict[str, torch.Tensor]:
    """Return what each unit is worth, by layer.

    ``l1`` is the sum of absolute weights, ``taylor`` the first-order estimate of
    how the loss changes without the unit, over a few training images;
    ``random`` a number between 0 and 1.

    Raises
    ------
    Unsupported
        If ``taylor`` is asked for on images without labels.

    References
    ----------
    P. Molchanov et al., "Importance Estimation for Neural Network Pruning", CVPR 2019, equation 8.
    """
    found = prunable(module, units)
    if criterion == "random":
        generator = torch.Generator().manual_seed(seed)
        shapes = {name: _alive(conv, units).shape for name, conv in found.items()}
        return {name: torch.rand(shape, generator=generator) for name, shape in shapes.items()}
    if criterion == "l1":
        sums = {name: units.gather(conv.weight.detach().abs(), conv) for name, conv in found.items()}
        return {name: each / each.mean() for name, each in sums.items()} if units.relative else sums
    gradients = _gradients(module, found, data, seed)
    return {
        name: units.gather(conv.weight.detach() * gradients[name], conv).abs() for name, conv in found.items()
    }


def _gradients(
    module: nn.Module, found: Mapping[str, nn.Conv2d], data: Data, seed: int
) -> dict[str, torch.Tensor]:
    """Return the loss's gradient by the weights over a few training images, in evaluation mode.

    What is drawn when images are read follows from ``seed`` as well.
    """
    if not data.labelled:
        raise Unsupported("criterion = 'taylor' needs labels, which these images do not have")
    count = min(TAYLOR_IMAGES, len(data.train))
    chosen = np.random.default_rng(seed).permutation(len(data.train))[:count]
    module.eval().zero_grad()
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        for indices in np.array_split(chosen, -(-count // TAYLOR_BATCH)):
            images, labels = data.train[indices.tolist()]
            outputs = module(torch.from_numpy(images))
            loss = functional.cross_entropy(outputs, torch.from_numpy(labels), reduction="sum")
            loss.backward()  # adds to what the batches before gave
    gradients = {}
    for name, conv in found.items():
        assert conv.weight.grad is not None
        gradients[name] = conv.weight.grad.clone()
    module.zero_grad()
    return gradients


# ---------------------------------------------------------------- which of them stay


def _keep(worth: torch.Tensor, alive: torch.Tensor, level: float) -> torch.Tensor:
    """Return which units stay when those of least worth go; the dead are the first to go."""
    ranked = torch.where(alive, worth, -torch.inf).flatten().argsort(stable=True)
    kept = alive.clone().flatten()
    kept[ranked[: round(level * kept.numel())]] = False
    return kept.view_as(alive)


def _alive(conv: nn.Conv2d, units: Units) -> torch.Tensor:
    """Return which units hold a weight other than zero."""
    return units.gather((conv.weight.detach() != 0).float(), conv) > 0


def _flat(values: Mapping[str, torch.Tensor], order: Mapping[str, torch.Tensor]) -> torch.Tensor:
    return torch.cat([values[name].flatten() for name in order])
