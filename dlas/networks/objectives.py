"""What a training minimises."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

import torch
from torch import nn
from torch.nn import functional


class Objective(nn.Module, ABC):
    """What a training minimises; its buffers are part of the training's checkpoints."""

    def identity(self) -> dict[str, Any]:
        """Return the settings without which a checkpoint is another training's, JSON-able."""
        return {}

    @abstractmethod
    def forward(self, module: nn.Module, images: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
        """Return the loss of ``module`` on images [n, c, h, w] with labels [n], as a scalar."""


class CrossEntropy(Objective):
    """The mean cross-entropy of the outputs."""

    def forward(self, module: nn.Module, images: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
        """Return the loss of a batch."""
        outputs = module(images)
        # A network that trains several at once puts out those of one below those of another.
        return functional.cross_entropy(outputs, labels.repeat(len(outputs) // len(labels)))
