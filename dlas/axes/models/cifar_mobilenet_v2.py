"""MobileNetV2 for 32x32 images."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import nn

from dlas.networks.torch import model as torch_model
from dlas.networks.torch.model import scaled

STEM, LAST = 32, 1280
STAGES = (
    (1, 16, 1, 1),
    (6, 24, 2, 1),
    (6, 32, 3, 2),
    (6, 64, 4, 2),
    (6, 96, 3, 1),
    (6, 160, 3, 2),
    (6, 320, 1, 1),
)
"""Expansion, channels, number of blocks and first stride of each stage."""


@dataclass(frozen=True)
class CifarMobilenetV2(torch_model.CifarModel):
    """MobileNetV2 with stride 1 in its stem and its second stage.

    At width 1 it has 2.30 M parameters and 91.2 M multiply-adds in convolutions
    and the linear layer.  The paper's Table 2 gives 2.3 M and 98 M: four operations
    for each element of each batch norm add 6.9 M, and both numbers include 1x1
    convolutions in the shortcuts of blocks that change the number of channels at
    stride 1, which the original architecture does not have (2.24 M parameters
    without them).

    References
    ----------
    M. Sandler et al., "MobileNetV2: Inverted Residuals and Linear Bottlenecks",
    CVPR 2018.
    """

    def module(self, shape: tuple[int, int, int], classes: int) -> nn.Module:
        """Return the network with random weights."""
        read, last = scaled(STEM, self.width), scaled(LAST, self.width)
        layers: list[nn.Module] = [
            *_with_norm(nn.Conv2d(shape[0], read, 3, padding=1, bias=False)),
            nn.ReLU(),
        ]
        for expansion, filters, count, first in STAGES:
            written = scaled(filters, self.width)
            for stride in (first, *[1] * (count - 1)):
                layers.append(InvertedResidual(read, written, expansion, stride))
                read = written
        layers += [*_with_norm(nn.Conv2d(read, last, 1, bias=False)), nn.ReLU()]
        layers += [nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(last, classes)]
        return nn.Sequential(*layers)


class InvertedResidual(nn.Module):
    """Expand, convolve each channel, project without activation; a shortcut at stride 1.

    The shortcut projects where the number of channels changes.
    """

    def __init__(self, read: int, written: int, expansion: int, stride: int) -> None:
        super().__init__()
        wide = expansion * read
        self.body = nn.Sequential(
            *_with_norm(nn.Conv2d(read, wide, 1, bias=False)),
            nn.ReLU(),
            *_with_norm(nn.Conv2d(wide, wide, 3, stride, padding=1, groups=wide, bias=False)),
            nn.ReLU(),
            *_with_norm(nn.Conv2d(wide, written, 1, bias=False)),
        )
        self.has_shortcut = stride == 1
        self.shortcut = nn.Sequential()
        if self.has_shortcut and read != written:
            self.shortcut = nn.Sequential(*_with_norm(nn.Conv2d(read, written, 1, bias=False)))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Map [n, read, h, w] to [n, written, h / stride, w / stride]."""
        y: torch.Tensor = self.body(x)
        return y + self.shortcut(x) if self.has_shortcut else y


def _with_norm(convolution: nn.Conv2d) -> tuple[nn.Conv2d, nn.BatchNorm2d]:
    """Return the convolution and the batch norm that follows it."""
    return convolution, nn.BatchNorm2d(convolution.out_channels)
