"""Rankings of one axis's values by latency, and whether they flip when another axis changes.

Two values of an axis are compared in one block, at two values of the other axis:
their order is kept, it flips, or one of the two comparisons is a tie, because the
confidence intervals overlap.
"""

from __future__ import annotations

import itertools
from collections import Counter
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pandas as pd

from dlas.analysis.interactions import pairs
from dlas.analysis.matching import Blocks, blocks, timed
from dlas.stack.types import Floats


@dataclass(frozen=True)
class Ranking:
    """How stable the ranking of one axis's values is along another axis."""

    ranked: str
    along: str
    """The axis whose values are ranked by latency, and the axis that changes."""
    kept: int
    flipped: int
    ties: int
    """Numbers of comparisons of two values' order at two values of the other axis, by outcome."""
    correlation: float
    """Kendall's rank correlation of medians: 1 where every order is kept, -1 where every order flips; ties of
    intervals count by their medians. NaN without comparisons.
    """
    examples: list[tuple[str, int, int]]
    """The most frequent flips as text, with their count and the number of comparisons."""

    @property
    def compared(self) -> int:
        """Number of comparisons."""
        return self.kept + self.flipped + self.ties


def rankings(points: pd.DataFrame, examples: int = 3) -> list[Ranking]:
    """Return the ranking of each axis along each other axis, the largest share of flips first.

    Parameters
    ----------
    points : DataFrame
        What :func:`dlas.analysis.roles.with_roles` returned.
    examples : int
        Number of flips to name in each.
    """
    ranked = []
    for first, second in pairs(points):
        ranked += [ranking(points, first, second, examples), ranking(points, second, first, examples)]
    return sorted(ranked, key=lambda entry: (not entry.compared, -entry.flipped / max(entry.compared, 1)))


def ranking(points: pd.DataFrame, ranked: str, along: str, examples: int = 3) -> Ranking:
    """Return how stable the ranking of ``ranked``'s values by latency is along ``along``."""
    crossed = blocks(points, along, ranked)
    by_interval, by_median = _orders(points, crossed)
    outcomes: Counter[str] = Counter()
    flips = []
    for place, other_place in itertools.combinations(range(len(crossed.values[0])), 2):
        same = by_interval[:, place] * by_interval[:, other_place]
        outcomes += Counter(kept=_count(same > 0), flipped=_count(same < 0), ties=_count(same == 0))
        signs = by_median[:, place] * by_median[:, other_place]
        outcomes += Counter(alike=_count(signs > 0), unlike=_count(signs < 0))
        flips += [
            (_count(same[:, pair] < 0), _count(~np.isnan(same[:, pair])), pair, place, other_place)
            for pair in np.flatnonzero((same < 0).any(axis=0)).tolist()
        ]
    signed = outcomes["alike"] + outcomes["unlike"]
    return Ranking(
        ranked,
        along,
        kept=outcomes["kept"],
        flipped=outcomes["flipped"],
        ties=outcomes["ties"],
        correlation=(outcomes["alike"] - outcomes["unlike"]) / signed if signed else np.nan,
        examples=[_in_words(crossed, flip) for flip in sorted(flips, key=lambda flip: -flip[0])[:examples]],
    )


def _in_words(crossed: Blocks, flip: tuple[int, int, int, int, int]) -> tuple[str, int, int]:
    """Return a flip as text, its count and the number of comparisons."""
    count, compared, pair, place, other_place = flip
    (along, values), names = crossed.values, list(itertools.combinations(range(len(crossed.values[1])), 2))
    first, second = (values[value] for value in names[pair])
    return f"{first} ↔ {second}, {along[place]} against {along[other_place]}", count, compared


def _count(truths: npt.NDArray[np.bool_]) -> int:
    return int(truths.sum())


def _orders(points: pd.DataFrame, crossed: Blocks) -> tuple[Floats, Floats]:
    """Return which of each two values is faster, [blocks, along, pairs]: by interval, and by median.

    -1 for the first, 1 for the second, 0 for a tie, NaN where either has no time.
    Along the batch axis, times per image are compared.
    """
    share = points["batch"].to_numpy(dtype=float) if "batch" in crossed.axes else 1.0
    has_time = timed(points).to_numpy(dtype=bool)
    median, low, high = (
        crossed.of(np.where(has_time, points[name].to_numpy(dtype=float) / share, np.nan))
        for name in ("latency_s", "latency_low_s", "latency_high_s")
    )
    left, right = np.triu_indices(median.shape[2], k=1)
    first, second = high[..., left] < low[..., right], high[..., right] < low[..., left]
    difference = median[..., left] - median[..., right]
    by_interval = np.where(np.isnan(difference), np.nan, second.astype(float) - first)
    return by_interval, np.sign(difference)
