"""Channel pruning as the paper does it: whole filters of convolutions, kept as zeros."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import nn

from dlas.compression._masked import MaskedPruning


@dataclass(frozen=True)
class ChannelPruning(MaskedPruning):
    """Global L1 pruning of convolutions' output channels, iterative with fine-tuning.

    The filters of pruned channels are zero and the network keeps its shape, so
    that only an algorithm that skips zeros gets faster.  A batch norm behind a
    pruned channel still shifts it.  ``compact_channel_pruning`` removes
    channels for good.  The options are those of
    :class:`dlas.compression._iterative.IterativePruning`; ``level`` is a share of
    output channels.

    References
    ----------
    DLAS, section 4.2.
    """

    GRID: ClassVar[tuple[float, ...]] = (*(percent / 100 for percent in range(5, 100, 5)), 0.99)

    def gather(self, values: torch.Tensor, conv: nn.Conv2d) -> torch.Tensor:
        """Return the sums over each filter, [k], of values [k, c / groups, r, s]."""
        return values.sum(dim=(1, 2, 3))

    def scatter(self, units: torch.Tensor, conv: nn.Conv2d) -> torch.Tensor:
        """Return each filter's value at all of its weights [k, c / groups, r, s]."""
        return units[:, None, None, None].expand_as(conv.weight)
