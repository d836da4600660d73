"""Weight pruning: single weights of convolutions, in the whole network."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from dlas.axes.compression.pruning.masked import MaskedPruning


@dataclass(frozen=True)
class WeightPruning(MaskedPruning):
    """Global L1 unstructured pruning of convolutions' weights, iterative with fine-tuning.

    The options are those of :class:`dlas.axes.compression.pruning.iterative.IterativePruning`;
    ``level`` is a share of weights.

    References
    ----------
    DLAS, section 4.2.
    """

    GRID: ClassVar[tuple[float, ...]] = (0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.99)
