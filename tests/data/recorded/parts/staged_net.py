"""A residual network's stages, narrow: what shallow phases can stand in for."""

from __future__ import annotations

from dataclasses import dataclass

from dlas.networks.torch_model import TorchModel
from torch import nn


def block(read: int, written: int, stride: int) -> nn.Sequential:
    """Return a convolution with batch norm."""
    conv = nn.Conv2d(read, written, 3, stride, padding=1, bias=False)
    return nn.Sequential(conv, nn.BatchNorm2d(written), nn.ReLU())


class Stages(nn.Module):
    """A stem and two stages of two blocks."""

    def __init__(self, channels: int, classes: int) -> None:
        super().__init__()
        self.stem = nn.Sequential(nn.Conv2d(channels, 8, 3, padding=1, bias=False), nn.BatchNorm2d(8))
        self.layer1 = nn.Sequential(block(8, 8, 1), block(8, 8, 1))
        self.layer2 = nn.Sequential(block(8, 16, 2), block(16, 16, 1))
        self.classifier = nn.Linear(16, classes)

    def forward(self, x):
        """Map images [n, c, h, w] to outputs [n, classes]."""
        x = self.layer2(self.layer1(self.stem(x).relu()))
        return self.classifier(x.mean((2, 3)))


@dataclass(frozen=True)
class StagedNet(TorchModel):
    """The stages, untrained."""

    def module(self, shape: tuple[int, int, int], classes: int) -> nn.Module:
        """Return the network with random weights."""
        return Stages(shape[0], classes)
