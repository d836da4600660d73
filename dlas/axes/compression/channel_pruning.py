"""Channel pruning as in the paper: whole filters of convolutions are set to zero."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from dlas.axes.compression.pruning import channels
from dlas.axes.compression.pruning.channels import Channels
from dlas.axes.compression.pruning.masked import MaskedPruning


@dataclass(frozen=True)
class ChannelPruning(Channels, MaskedPruning):
    """Global L1 pruning of convolutions' output channels, iterative with fine-tuning.

    The filters of pruned channels are zero and the network keeps its shape, so
    only algorithms that skip zeros get faster.  A batch norm behind a pruned
    channel still shifts it.  ``compact_channel_pruning`` removes
    channels for good.  The options are those of
    :class:`dlas.axes.compression.pruning.iterative.IterativePruning`; ``level`` is a share of
    output channels.

    References
    ----------
    DLAS, section 4.2.
    """

    GRID: ClassVar[tuple[float, ...]] = channels.GRID
