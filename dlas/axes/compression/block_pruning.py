"""Block pruning: the same place of the kernel in several neighbouring filters, for block-sparse kernels."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, ClassVar

import torch
from pydantic import Field
from torch import nn
from torch.nn import functional

from dlas.axes.compression.pruning.masked import MaskedPruning


@dataclass(frozen=True)
class BlockPruning(MaskedPruning):
    """Global pruning of blocks: the weights at one place of the kernel in several neighbouring filters.

    A kernel that computes a block of output channels at a time then needs one
    index for the whole block.  Convolutions with fewer output channels a group
    than a block, depthwise ones for instance, are left dense; if the size
    does not divide the number of channels, the last block is smaller.  The other options are those
    of :class:`dlas.axes.compression.pruning.iterative.IterativePruning`; ``level`` is a share of blocks.
    """

    GRID: ClassVar[tuple[float, ...]] = (0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.99)

    size: Annotated[int, Field(ge=2, le=64)] = 4
    """Output channels of a block."""

    def takes(self, conv: nn.Conv2d) -> bool:
        """Return whether the convolution's groups fill a block."""
        return conv.out_channels // conv.groups >= self.size

    def gather(self, values: torch.Tensor, conv: nn.Conv2d) -> torch.Tensor:
        """Return the sums over each block, [groups, blocks, c / groups, r, s]."""
        filters = conv.out_channels // conv.groups
        grouped = values.reshape(conv.groups, filters, *values.shape[1:])
        padded = functional.pad(grouped, (0, 0, 0, 0, 0, 0, 0, -filters % self.size))
        blocks: torch.Tensor = padded.unflatten(1, (-1, self.size))
        return blocks.sum(dim=2)

    def scatter(self, units: torch.Tensor, conv: nn.Conv2d) -> torch.Tensor:
        """Return each block's value at all of its weights [k, c / groups, r, s]."""
        filters = conv.out_channels // conv.groups
        return units.repeat_interleave(self.size, dim=1)[:, :filters].reshape(conv.weight.shape)
