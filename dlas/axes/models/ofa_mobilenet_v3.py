"""Subnetworks of Once-for-All's MobileNetV3."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, ClassVar

from pydantic import AfterValidator
from torch import nn

from dlas.networks.subnets.drawn import DrawnSubnet, SubnetText
from dlas.networks.subnets.modules import subnet as made
from dlas.networks.subnets.shapes import LEAST_SIZE, MOST_SIZE, WIDTHS, check_size, ofa, operators
from dlas.networks.subnets.written import Space, parse
from dlas.networks.torch.model import TorchModel
from dlas.stack import Operator


def _known_width(width: float) -> float:
    if width not in WIDTHS:
        raise ValueError(f"expected {' or '.join(map(str, WIDTHS))}")
    return width


@dataclass(frozen=True)
class OfaMobilenetV3(DrawnSubnet, TorchModel):
    """A subnetwork of Once-for-All's MobileNetV3, untrained.

    Kernel sizes and expansion ratios of its five stages of two to four layers.  With ``subnet = "drawn"``
    in a study that draws, it is drawn from ``space``.  Images have 112 to 240 pixels a side.

    References
    ----------
    H. Cai et al., "Once-for-All", ICLR 2020; M. Sahni et al., "CompOFA", ICLR 2021.
    """

    image_sizes: ClassVar[tuple[int, ...]] = (128, 144, 160, 176, 192, 208, 224)

    subnet: SubnetText
    """``"3357:6643,35:46,333:444,3355:6644,77:33"``: a stage's kernel sizes (3, 5 or 7), a colon, its
    expansion ratios (3, 4 or 6); or ``"drawn"``.
    """
    width: Annotated[float, AfterValidator(_known_width)] = 1.0
    """Multiplies the number of channels of every stage."""
    space: Space = "ofa"
    """Where subnetworks are drawn: all; or those whose depth decides the expansion, with kernels of 3, 5, 3,
    3 and 5 in the five stages, or any.
    """

    def module(self, shape: tuple[int, int, int], classes: int) -> nn.Module:
        """Return the network with random weights.

        Raises
        ------
        ValueError
            If images have other sizes than it is for.
        """
        channels, height, width = shape
        if height != width or not LEAST_SIZE <= height <= MOST_SIZE:
            raise ValueError(f"expected images of equal sides of {LEAST_SIZE} to {MOST_SIZE}")
        return made(ofa(self.width), parse(self.subnet), channels, classes)

    def operators(self, shape: tuple[int, int, int], classes: int, batch: int) -> Sequence[Operator]:
        """Return the operators of an inference.

        Raises
        ------
        InputError
            If images have other sizes than it is for.
        """
        channels, size, _ = shape
        check_size(size)
        return operators(ofa(self.width), parse(self.subnet), size, classes, batch, channels)
