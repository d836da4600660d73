"""Which rankings along one axis flip when another axis changes.

Two values of an axis are compared in one block, at one value of the other axis
and again at another: the order is kept, it flips, or one of the two comparisons
is a tie, because the intervals overlap.
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

Numbers = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Ranking:
    """How the order of one axis's values holds along another axis.

    Parameters
    ----------
    ranked, along : str
        The axis whose values are ordered by latency, and the axis that changes.
    kept, flipped, ties : int
        Comparisons of the order of two values at two places, by outcome.
    correlation : float
        Kendall's rank correlation: 1 where every order of medians is kept, -1
        where every one is turned round; ties count as their medians say.
        NaN where nothing could be compared.
    examples : list of (str, int, int)
        The flips seen most often, in words, with how often of how many comparisons.
    """

    ranked: str
    along: str
    kept: int
    flipped: int
    ties: int
    correlation: float
    examples: list[tuple[str, int, int]]

    @property
    def compared(self) -> int:
        """Comparisons in all."""
        return self.kept + self.flipped + self.ties


def rankings(points: pd.DataFrame, examples: int = 3) -> list[Ranking]:
    """Return how the order along each axis holds along each other axis, the most flips first.

    Parameters
    ----------
    points : DataFrame
        What :func:`dlas.analysis.roles.with_roles` returned.
    examples : int
        Flips to name of each.
    """
    ranked = []
    for first, second in pairs(points):
        ranked += [ranking(points, first, second, examples), ranking(points, second, first, examples)]
    return sorted(ranked, key=lambda one: (not one.compared, -one.flipped / max(one.compared, 1)))


def ranking(points: pd.DataFrame, ranked: str, along: str, examples: int = 3) -> Ranking:
    """Return how the order of ``ranked``'s values by latency holds along ``along``."""
    crossed = blocks(points, along, ranked)
    by_interval, by_median = _orders(points, crossed)
    outcomes: Counter[str] = Counter()
    flips = []
    for one, other in itertools.combinations(range(len(crossed.values[0])), 2):
        same = by_interval[:, one] * by_interval[:, other]
        outcomes += Counter(kept=_count(same > 0), flipped=_count(same < 0), ties=_count(same == 0))
        signs = by_median[:, one] * by_median[:, other]
        outcomes += Counter(alike=_count(signs > 0), unlike=_count(signs < 0))
        flips += [
            (_count(same[:, pair] < 0), _count(~np.isnan(same[:, pair])), pair, one, other)
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
    """Return a flip in words, how often it was seen and of how many comparisons."""
    count, compared, pair, one, other = flip
    (places, values), names = crossed.values, list(itertools.combinations(range(len(crossed.values[1])), 2))
    first, second = (values[place] for place in names[pair])
    return f"{first} ↔ {second}, {places[one]} against {places[other]}", count, compared


def _count(truths: npt.NDArray[np.bool_]) -> int:
    return int(truths.sum())


def _orders(points: pd.DataFrame, crossed: Blocks) -> tuple[Numbers, Numbers]:
    """Return who is faster of each two values, [blocks, along, pairs]: by interval, and by median.

    -1 where the first is, 1 where the second is, 0 where they tie, NaN where
    either has no time.  Along the batch axis it is an image's share that counts.
    """
    share = points["batch"].to_numpy(dtype=float) if "batch" in crossed.axes else 1.0
    known = timed(points).to_numpy(dtype=bool)
    median, low, high = (
        crossed.of(np.where(known, points[name].to_numpy(dtype=float) / share, np.nan))
        for name in ("latency_s", "latency_low_s", "latency_high_s")
    )
    one, other = np.triu_indices(median.shape[2], k=1)
    first, second = high[..., one] < low[..., other], high[..., other] < low[..., one]
    difference = median[..., one] - median[..., other]
    by_interval = np.where(np.isnan(difference), np.nan, second.astype(float) - first)
    return by_interval, np.sign(difference)
