"""Importance of units to a network: by their weights, by the loss without them, or at random."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

import numpy as np
import torch
from torch import nn
from torch.nn import functional

from dlas.axes.compression.pruning.units import Units, nonzero_units, prunable
from dlas.errors import Unsupported
from dlas.stack import Data

Criterion = Literal["l1", "taylor", "random"]
TAYLOR_IMAGES = 512
TAYLOR_BATCH = 64


def unit_importance(
    module: nn.Module, units: Units, criterion: Criterion, data: Data, seed: int
) -> dict[str, torch.Tensor]:
    """Return the importance of each unit, by layer.

    ``l1`` is the sum of absolute weights, as the units compare it between layers; ``taylor`` the
    first-order estimate of how the loss changes without the unit, over a few training images;
    ``random`` draws from [0, 1).

    Raises
    ------
    Unsupported
        If ``taylor`` is asked for on images without labels.

    References
    ----------
    P. Molchanov et al., "Importance Estimation for Neural Network Pruning", CVPR 2019, equation 8.
    """
    convolutions = prunable(module, units)
    if criterion == "random":
        generator = torch.Generator().manual_seed(seed)
        shapes = {name: nonzero_units(conv, units).shape for name, conv in convolutions.items()}
        return {name: torch.rand(shape, generator=generator) for name, shape in shapes.items()}
    if criterion == "l1":
        sums = {name: units.gather(conv.weight.detach().abs(), conv) for name, conv in convolutions.items()}
        return {name: units.compared(each) for name, each in sums.items()}
    gradients = _gradients(module, convolutions, data, seed)
    return {
        name: units.gather(conv.weight.detach() * gradients[name], conv).abs()
        for name, conv in convolutions.items()
    }


def _gradients(
    module: nn.Module, convolutions: Mapping[str, nn.Conv2d], data: Data, seed: int
) -> dict[str, torch.Tensor]:
    """Return the loss's gradient by the weights over a few training images, in evaluation mode.

    Random augmentation of the images follows from ``seed`` as well.
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
            loss.backward()  # accumulates over batches
    gradients = {}
    for name, conv in convolutions.items():
        assert conv.weight.grad is not None
        gradients[name] = conv.weight.grad.clone()
    module.zero_grad()
    return gradients
