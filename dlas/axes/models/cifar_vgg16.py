"""VGG-16 for 32x32 images."""

from __future__ import annotations

from dataclasses import dataclass

from torch import nn

from dlas.networks.torch import model as torch_model
from dlas.networks.torch.model import scaled

STAGES = ((64, 2), (128, 2), (256, 3), (512, 3), (512, 3))
"""Channels and number of convolutions of each stage; every stage ends in pooling."""


@dataclass(frozen=True)
class CifarVgg16(torch_model.CifarModel):
    """VGG-16 with batch norm and a single linear layer behind its 13 convolutions.

    At width 1 it has 14.73 M parameters and 313.2 M multiply-adds in
    convolutions and the linear layer.  The paper's Table 2 gives 14.7 M and 314 M:
    four operations for each element of each batch norm add 1.1 M, truncated to
    whole millions.

    References
    ----------
    K. Simonyan and A. Zisserman, "Very Deep Convolutional Networks for
    Large-Scale Image Recognition", ICLR 2015.
    """

    def module(self, shape: tuple[int, int, int], classes: int) -> nn.Module:
        """Return the network with random weights."""
        layers: list[nn.Module] = []
        read = shape[0]
        for filters, count in STAGES:
            written = scaled(filters, self.width)
            for _ in range(count):
                layers += [nn.Conv2d(read, written, 3, padding=1), nn.BatchNorm2d(written), nn.ReLU()]
                read = written
            layers.append(nn.MaxPool2d(2))
        layers += [nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(read, classes)]
        return nn.Sequential(*layers)
