"""Units of pruning: weights, filters or blocks that are pruned as a whole."""

from __future__ import annotations

from typing import Protocol

import torch
from torch import nn

from dlas.errors import Unsupported


class Units(Protocol):
    """The unit of a pruning technique: a weight, a filter or a block, pruned as a whole."""

    def takes(self, conv: nn.Conv2d) -> bool:
        """Return whether this convolution is pruned."""
        ...

    def compared(self, sums: torch.Tensor) -> torch.Tensor:
        """Return a convolution's sums of absolute weights as they are compared with other layers'."""
        ...

    def gather(self, values: torch.Tensor, conv: nn.Conv2d) -> torch.Tensor:
        """Return the sums over each unit of values [k, c / groups, r, s]."""
        ...

    def scatter(self, units: torch.Tensor, conv: nn.Conv2d) -> torch.Tensor:
        """Return values [k, c / groups, r, s] from one value for each unit, as :meth:`gather` shapes them."""
        ...


def prunable(module: nn.Module, units: Units) -> dict[str, nn.Conv2d]:
    """Return the convolutions that are pruned, by name.

    Raises
    ------
    Unsupported
        If there is none.
    """
    convolutions = {
        name: layer
        for name, layer in module.named_modules()
        if isinstance(layer, nn.Conv2d) and units.takes(layer)
    }
    if not convolutions:
        raise Unsupported("the network has no convolution that this technique prunes")
    return convolutions


def nonzero_units(conv: nn.Conv2d, units: Units) -> torch.Tensor:
    """Return which units have a nonzero weight."""
    return units.gather((conv.weight.detach() != 0).float(), conv) > 0


def share_pruned(module: nn.Module, units: Units) -> float:
    """Return the share of the units that is zero."""
    nonzero = [nonzero_units(conv, units) for conv in prunable(module, units).values()]
    return 1 - sum(int(unit.sum()) for unit in nonzero) / sum(unit.numel() for unit in nonzero)
