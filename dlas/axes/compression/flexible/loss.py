"""The joint loss of many paths, each beside its own recent mean."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import nn
from torch.nn import functional

from dlas.axes.compression.flexible.module import FlexibleModule
from dlas.networks.objectives import Objective

WINDOW = 100
"""Steps of the mean that a path's loss is divided by."""
MOST = 16
"""Paths in a step; of more, as many are drawn."""
LEAST = torch.finfo(torch.float32).eps
"""Of a mean: a path that makes no error any more must not divide by zero."""


class PathLoss(Objective):
    """Sum over paths of alpha J / E[J], where E[J] is the mean of J over the last 100 steps.

    The mean counts the step itself and is constant to the gradient, so that every path pulls as strongly
    however large its loss is; alpha is one over the number of paths.  Of more than 16 paths, 16 are drawn
    in each step, and their sum is scaled up to all.

    Parameters
    ----------
    paths : sequence of str
        Of a :class:`FlexibleModule` network.

    References
    ----------
    J. Clemons et al., "Augmenting Legacy Networks for Flexible Inference", equation 1.
    """

    recent: torch.Tensor
    steps: torch.Tensor

    def __init__(self, paths: Sequence[str]) -> None:
        super().__init__()
        self.paths = tuple(paths)
        # Buffers, because a training that goes on from a checkpoint needs them.
        self.register_buffer("recent", torch.zeros(len(paths), WINDOW))
        self.register_buffer("steps", torch.zeros(len(paths), dtype=torch.long))

    def identity(self) -> dict[str, Any]:
        """Return the paths, which another training may differ in."""
        return {"paths": list(self.paths)}

    def forward(self, module: nn.Module, images: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
        """Return the joint loss of a batch."""
        assert isinstance(module, FlexibleModule)
        drawn = self._drawn()
        outputs = module.outputs(images, [self.paths[number] for number in drawn])
        total = torch.zeros((), device=images.device)
        for number in drawn:
            loss = functional.cross_entropy(outputs[self.paths[number]], labels)
            total = total + loss / self._mean(number, loss.detach())
        return total / len(drawn)  # alpha for all paths, scaled up where some were drawn

    def _drawn(self) -> list[int]:
        if len(self.paths) <= MOST:
            return list(range(len(self.paths)))
        return sorted(torch.randperm(len(self.paths))[:MOST].tolist())

    def _mean(self, number: int, loss: torch.Tensor) -> torch.Tensor:
        """Return the mean of a path's last losses, this one among them."""
        self.recent[number, self.steps[number] % WINDOW] = loss
        self.steps[number] += 1
        known = self.recent[number, : int(self.steps[number].clamp(max=WINDOW))]
        return known.mean().clamp(min=LEAST)
