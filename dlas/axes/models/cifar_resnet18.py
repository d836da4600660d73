"""ResNet-18 for 32x32 images."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import nn
from torch.nn import functional

from dlas.networks.torch import model as torch_model
from dlas.networks.torch.model import scaled

STAGES = ((64, 1), (128, 2), (256, 2), (512, 2))
"""Channels and first stride of each stage of two blocks."""


@dataclass(frozen=True)
class CifarResnet18(torch_model.CifarModel):
    """ResNet-18 with a 3x3 stem and no pooling before its first stage.

    At width 1 it has 11.17 M parameters and 555.4 M multiply-adds in
    convolutions and the linear layer, of which the three projecting shortcuts
    are 6.3 M.  The paper's Table 2 gives 11.2 M and 557 M: four operations for each
    element of each batch norm add 2.5 M, truncated to whole millions; the same
    holds for its other three networks.

    References
    ----------
    K. He et al., "Deep Residual Learning for Image Recognition", CVPR 2016.
    """

    def module(self, shape: tuple[int, int, int], classes: int) -> nn.Module:
        """Return the network with random weights."""
        return ResNet(shape[0], classes, self.width)


class ResNet(nn.Module):
    """Stem, four stages of two basic blocks, global average, linear layer."""

    layer1: nn.Sequential
    layer2: nn.Sequential
    layer3: nn.Sequential
    layer4: nn.Sequential

    def __init__(self, channels: int, classes: int, width: float) -> None:
        super().__init__()
        read = scaled(STAGES[0][0], width)
        self.conv1 = nn.Conv2d(channels, read, 3, padding=1, bias=False)
        self.bn1 = nn.BatchNorm2d(read)
        for number, (filters, stride) in enumerate(STAGES, start=1):
            written = scaled(filters, width)
            stage = nn.Sequential(BasicBlock(read, written, stride), BasicBlock(written, written, 1))
            self.add_module(f"layer{number}", stage)
            read = written
        self.pool = nn.AdaptiveAvgPool2d(1)
        self.fc = nn.Linear(read, classes)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Map images [n, c, h, w] to outputs [n, classes]."""
        x = functional.relu(self.bn1(self.conv1(x)))
        x = self.layer4(self.layer3(self.layer2(self.layer1(x))))
        outputs: torch.Tensor = self.fc(self.pool(x).flatten(1))
        return outputs


class BasicBlock(nn.Module):
    """Two 3x3 convolutions beside a shortcut, which projects where shapes differ."""

    def __init__(self, read: int, written: int, stride: int) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(read, written, 3, stride, padding=1, bias=False)
        self.bn1 = nn.BatchNorm2d(written)
        self.conv2 = nn.Conv2d(written, written, 3, padding=1, bias=False)
        self.bn2 = nn.BatchNorm2d(written)
        self.shortcut = nn.Sequential()
        if stride != 1 or read != written:
            projection = nn.Conv2d(read, written, 1, stride, bias=False)
            self.shortcut = nn.Sequential(projection, nn.BatchNorm2d(written))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Map [n, read, h, w] to [n, written, h / stride, w / stride]."""
        inner = functional.relu(self.bn1(self.conv1(x)))
        return functional.relu(self.bn2(self.conv2(inner)) + self.shortcut(x))
