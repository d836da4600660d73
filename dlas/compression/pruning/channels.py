"""Channels as what is pruned: whole filters of convolutions."""

from __future__ import annotations

from typing import ClassVar

import torch
from torch import nn

GRID = (*(percent / 100 for percent in range(5, 100, 5)), 0.99)
"""The levels that channels are pruned to one after the other.

References
----------
DLAS, section 4.2.
"""


class Channels:
    """The output channels of every convolution, as :class:`dlas.compression.pruning.units.Units`."""

    # A filter's sum grows with the number of its weights, and weights shrink with it: compared as they
    # are, layers of few inputs would go first, whole, and by their means those of many.
    relative: ClassVar[bool] = True

    def takes(self, conv: nn.Conv2d) -> bool:
        """Return True: every convolution has output channels."""
        return True

    def gather(self, values: torch.Tensor, conv: nn.Conv2d) -> torch.Tensor:
        """Return the sums over each filter, [k], of values [k, c / groups, r, s]."""
        return values.sum(dim=(1, 2, 3))

    def scatter(self, units: torch.Tensor, conv: nn.Conv2d) -> torch.Tensor:
        """Return each filter's value at all of its weights [k, c / groups, r, s]."""
        return units[:, None, None, None].expand_as(conv.weight)
