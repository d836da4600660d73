"""Masks of the weights that stay."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

import torch
from torch import nn

from dlas.axes.compression.pruning.units import Units, nonzero_units, prunable
from dlas.errors import Unsupported, unknown
from dlas.networks.torch.network import conv_weights

Scope = Literal["global", "layer"]
Masks = dict[str, torch.Tensor]
"""By the layer's name, whether a weight [k, c / groups, r, s] stays."""


def masks(
    module: nn.Module,
    units: Units,
    level: float,
    scope: Scope,
    importance: Mapping[str, torch.Tensor],
) -> Masks:
    """Return which weights of a module's convolutions stay.

    Parameters
    ----------
    level : float
        Share of the units to prune; units that are already zero count as pruned.
    scope : {"global", "layer"}
        Compare all units of the network with one another, or those of each convolution.
    importance : mapping
        Of each unit, by layer; see :func:`dlas.axes.compression.pruning.importance.unit_importance`.
    """
    convolutions = prunable(module, units)
    nonzero = {name: nonzero_units(conv, units) for name, conv in convolutions.items()}
    if scope == "layer":
        stay = {name: _keep(importance[name], nonzero[name], level) for name in nonzero}
    else:
        flat = _keep(_flat(importance, nonzero), _flat(nonzero, nonzero), level)
        pieces = flat.split([mask.numel() for mask in nonzero.values()])
        stay = {name: piece.view_as(nonzero[name]) for name, piece in zip(nonzero, pieces, strict=True)}
    return {name: units.scatter(stay[name], convolutions[name]) for name in stay}


def masks_by_layer(
    module: nn.Module, units: Units, shares: Mapping[str, float], importance: Mapping[str, torch.Tensor]
) -> Masks:
    """Return which weights of a module's convolutions stay when each loses a share of its own.

    Raises
    ------
    Unsupported
        If shares are not those of exactly the convolutions that are pruned.
    """
    convolutions = prunable(module, units)
    for name in shares:
        if name not in convolutions:
            raise Unsupported(str(unknown("layer", name, convolutions)))
    missing = [name for name in convolutions if name not in shares]
    if missing:
        raise Unsupported(f"no share of layer {missing[0]!r}, of {len(convolutions)} that are pruned")
    return {
        name: units.scatter(_keep(importance[name], nonzero_units(conv, units), shares[name]), conv)
        for name, conv in convolutions.items()
    }


@torch.no_grad()
def apply(module: nn.Module, stay: Masks) -> None:
    """Set the module's pruned weights to zero."""
    weights = conv_weights(module)
    for name, mask in stay.items():
        weights[name].masked_fill_(~mask, 0)


def _keep(importance: torch.Tensor, nonzero: torch.Tensor, level: float) -> torch.Tensor:
    """Return which units stay after pruning the least important ones; units at zero are pruned first."""
    ranked = torch.where(nonzero, importance, -torch.inf).flatten().argsort(stable=True)
    stays = nonzero.clone().flatten()
    stays[ranked[: round(level * stays.numel())]] = False
    return stays.view_as(nonzero)


def _flat(values: Mapping[str, torch.Tensor], order: Mapping[str, torch.Tensor]) -> torch.Tensor:
    return torch.cat([values[name].flatten() for name in order])
