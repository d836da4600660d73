"""MobileNetV1 for 32x32 images."""

from __future__ import annotations

from dataclasses import dataclass

from torch import nn

from dlas.networks.torch import model as torch_model
from dlas.networks.torch.model import scaled

STEM = 32
BLOCKS = (
    *((64, 1), (128, 2), (128, 1), (256, 2), (256, 1), (512, 2)),
    *((512, 1),) * 5,
    *((1024, 2), (1024, 1)),
)
"""Channels and stride of each depthwise separable block."""


@dataclass(frozen=True)
class CifarMobilenetV1(torch_model.CifarModel):
    """MobileNetV1 with a stem of stride 1.

    At width 1 it has 3.22 M parameters and 46.4 M multiply-adds in convolutions
    and the linear layer.  The paper's Table 2 gives 3.2 M and 48 M: four operations
    for each element of each batch norm add 1.6 M.

    References
    ----------
    A. Howard et al., "MobileNets: Efficient Convolutional Neural Networks for
    Mobile Vision Applications", 2017, https://arxiv.org/abs/1704.04861.
    """

    def module(self, shape: tuple[int, int, int], classes: int) -> nn.Module:
        """Return the network with random weights."""
        read = scaled(STEM, self.width)
        layers: list[nn.Module] = [
            nn.Conv2d(shape[0], read, 3, padding=1, bias=False),
            nn.BatchNorm2d(read),
            nn.ReLU(),
        ]
        for filters, stride in BLOCKS:
            written = scaled(filters, self.width)
            layers.append(separable(read, written, stride))
            read = written
        layers += [nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(read, classes)]
        return nn.Sequential(*layers)


def separable(read: int, written: int, stride: int) -> nn.Sequential:
    """Return a 3x3 convolution within each channel, then a 1x1 convolution across channels."""
    return nn.Sequential(
        nn.Conv2d(read, read, 3, stride, padding=1, groups=read, bias=False),
        nn.BatchNorm2d(read),
        nn.ReLU(),
        nn.Conv2d(read, written, 1, bias=False),
        nn.BatchNorm2d(written),
        nn.ReLU(),
    )
