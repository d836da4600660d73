"""Channel pruning as in the paper: whole filters of convolutions are set to zero."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

import torch

from dlas.axes.compression.pruning import channels
from dlas.axes.compression.pruning.channels import Channels
from dlas.axes.compression.pruning.masked import MaskedPruning
from dlas.errors import InputError


@dataclass(frozen=True)
class ChannelPruning(Channels, MaskedPruning):
    """Global L1 pruning of convolutions' output channels, iterative with fine-tuning.

    The paper prints no more than that.  ``importance`` says what is ranked over all layers:
    "plain" is L1 as printed, the default is normalised by layer.

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

    importance: Literal["relative", "plain"] = "relative"
    """How filters of different layers are compared by L1: "relative" divides the sum of a filter's absolute
    weights by the mean of its layer's sums; "plain" takes the sums as they are, by which layers with few
    weights a filter, depthwise ones first, can lose all their channels.
    """

    def verify(self) -> None:
        """Refuse an importance that nothing would ask for.

        Raises
        ------
        InputError
        """
        super().verify()
        ranked_by_l1 = self.criterion == "l1" and self.scope == "global" and not self.layers
        if self.importance != "relative" and not ranked_by_l1:
            given = f"layers = {self.layers!r}" if self.layers else f"scope = {self.scope!r}"
            raise InputError(
                f"importance = {self.importance!r} has no effect with criterion = {self.criterion!r} and "
                f"{given}: it compares sums of absolute weights, 'l1', of all layers, 'global'"
            )

    def compared(self, sums: torch.Tensor) -> torch.Tensor:
        """Return a layer's sums of absolute weights, divided by their mean if importance is relative."""
        return super().compared(sums) if self.importance == "relative" else sums
