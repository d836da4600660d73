"""A chain of convolutions, whose length and width may be drawn."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

import numpy as np
from dlas.networks.torch_model import TorchModel
from pydantic import Field
from torch import nn


@dataclass(frozen=True)
class ChainNet(TorchModel):
    """Convolutions with batch norm, and a linear layer.

    Parameters
    ----------
    depth, filters : int
        Convolutions, and filters of the first: the others have one more each.
    """

    image_sizes: ClassVar[tuple[int, ...]] = (8, 12)

    depth: Annotated[int, Field(ge=1, le=12)] = 2
    filters: Annotated[int, Field(ge=4, le=64)] = 8

    @classmethod
    def drawn(cls, rng: np.random.Generator) -> dict[str, Any]:
        """Return one of six chains."""
        return {"depth": int(rng.integers(1, 4)), "filters": int(rng.choice([8, 24]))}

    def module(self, shape: tuple[int, int, int], classes: int) -> nn.Module:
        """Return the network with random weights."""
        layers: list[nn.Module] = []
        read = shape[0]
        for written in range(self.filters, self.filters + self.depth):
            layers += [nn.Conv2d(read, written, 3, padding=1), nn.BatchNorm2d(written), nn.ReLU()]
            read = written
        return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(read, classes))
