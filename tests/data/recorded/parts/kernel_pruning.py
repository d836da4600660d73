from dataclasses import dataclass
from typing import ClassVar

from dlas.compression.pruning.masked import MaskedPruning


@dataclass(frozen=True)
class KernelPruning(MaskedPruning):
    """Pruning of whole kernels: what one filter reads of one channel."""

    GRID: ClassVar[tuple[float, ...]] = (0.25, 0.5, 0.75)  # the levels to train

    def gather(self, values, conv):  # [k, c / groups, r, s] to one value a unit
        return values.sum(dim=(2, 3))

    def scatter(self, units, conv):  # and back: a unit's value for each of its weights
        return units[:, :, None, None].expand_as(conv.weight)
