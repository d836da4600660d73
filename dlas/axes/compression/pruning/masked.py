"""Pruning by masks: the network keeps its shape, and pruned weights are zero."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import nn

from dlas.axes.compression.pruning import shares
from dlas.axes.compression.pruning.importance import unit_importance
from dlas.axes.compression.pruning.iterative import ELBOW, IterativePruning, ratios
from dlas.axes.compression.pruning.masks import apply, masks, masks_by_layer
from dlas.axes.compression.pruning.units import share_pruned
from dlas.errors import InputError, Unsupported
from dlas.networks.torch.network import TorchNetwork
from dlas.stack import Data, Workspace


@dataclass(frozen=True)
class MaskedPruning(IterativePruning):
    """Sets the least important units to zero; a subclass defines what a unit is.

    Subclasses are the :class:`dlas.axes.compression.pruning.units.Units` of their technique.
    """

    layers: str = ""
    """A TOML file with the share of each layer, lines like ``"layer1.0.conv1" = 0.87`` under ``[layers]``: an
    untrained network then loses what a trained one lost when it was pruned globally, and ``level`` only names
    that. ``python -m benchmarks.layer_shares`` writes such files from rows.
    """

    def verify(self) -> None:
        """Read the file of shares, and refuse what would contradict it.

        Raises
        ------
        InputError
        """
        super().verify()
        if not self.layers:
            return
        if self.recipe != "none" or self.level == ELBOW or self.scope != "global":
            raise InputError(
                f"layers = {self.layers!r} needs recipe = 'none', a number as level and scope = 'global', "
                f"not recipe = {self.recipe!r}, level = {self.level!r} and scope = {self.scope!r}"
            )
        shares.read(self._shares_file())

    def files(self) -> list[Path]:
        """Return the file of shares, if there is one."""
        return [self._shares_file()] if self.layers else []

    def _shares_file(self) -> Path:
        return Path(self.layers).expanduser()

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
        if not self.layers:
            apply(network.module, masks(network.module, self, level, self.scope, importance))
            return
        try:
            stay = masks_by_layer(network.module, self, shares.read(self._shares_file()), importance)
        except Unsupported as error:
            raise Unsupported(f"{self.layers}: {error}") from None
        apply(network.module, stay)

    def reached(self, network: TorchNetwork) -> dict[str, Any]:
        """Return the share of units pruned, and of weights that are zero."""
        return {"units": share_pruned(network.module, self), **ratios(network)}
