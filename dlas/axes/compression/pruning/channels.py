"""Channels as units of pruning: whole filters of convolutions."""

from __future__ import annotations

import torch
from torch import nn

GRID = (*(percent / 100 for percent in range(5, 100, 5)), 0.99)
"""Levels of iterative channel pruning.

References
----------
DLAS, section 4.2.
"""


class Channels:
    """The output channels of every convolution, as :class:`dlas.axes.compression.pruning.units.Units`."""

    def takes(self, conv: nn.Conv2d) -> bool:
        """Return True: every convolution has output channels."""
        return True

    def compared(self, sums: torch.Tensor) -> torch.Tensor:
        """Return the sums by their mean over the layer.

        Sums over a filter grow with its number of weights, while weights shrink with it: by plain sums
        whole layers of few inputs would go first, by means whole layers of many inputs.
        """
        return sums / sums.mean()

    def gather(self, values: torch.Tensor, conv: nn.Conv2d) -> torch.Tensor:
        """Return the sums over each filter, [k], of values [k, c / groups, r, s]."""
        return values.sum(dim=(1, 2, 3))

    def scatter(self, units: torch.Tensor, conv: nn.Conv2d) -> torch.Tensor:
        """Return each filter's value at all of its weights [k, c / groups, r, s]."""
        return units[:, None, None, None].expand_as(conv.weight)
