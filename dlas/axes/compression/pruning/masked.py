"""Pruning by masks: the network keeps its shape, and pruned weights are zero."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch import nn

from dlas.axes.compression.pruning.importance import unit_importance
from dlas.axes.compression.pruning.iterative import IterativePruning, ratios
from dlas.axes.compression.pruning.masks import apply, masks
from dlas.axes.compression.pruning.units import share_pruned
from dlas.networks.torch.network import TorchNetwork
from dlas.stack import Data, Workspace


@dataclass(frozen=True)
class MaskedPruning(IterativePruning):
    """Sets the least important units to zero; a subclass defines what a unit is.

    Subclasses are the :class:`dlas.axes.compression.pruning.units.Units` of their technique.
    """

    def takes(self, conv: nn.Conv2d) -> bool:
        """Return whether this convolution is pruned."""
        return True

    def compared(self, sums: torch.Tensor) -> torch.Tensor:
        """Return sums of absolute weights as they are compared with other layers': by default as they are."""
        return sums

    def gather(self, values: torch.Tensor, conv: nn.Conv2d) -> torch.Tensor:
        """Return the sums over each unit of values [k, c / groups, r, s]: by default a unit is one weight."""
        return values

    def scatter(self, units: torch.Tensor, conv: nn.Conv2d) -> torch.Tensor:
        """Return values [k, c / groups, r, s] from one value for each unit."""
        return units

    def prune(self, network: TorchNetwork, level: float, data: Data, workspace: Workspace) -> None:
        """Set the least important units to zero."""
        importance = unit_importance(network.module, self, self.criterion, data, workspace.seed)
        apply(network.module, masks(network.module, self, level, self.scope, importance))

    def reached(self, network: TorchNetwork) -> dict[str, Any]:
        """Return the share of units pruned, and of weights that are zero."""
        return {"units": share_pruned(network.module, self), **ratios(network)}
