"""Analysis of variance: how much of the variation of latency two axes explain, and their interaction.

The analysis is of the logarithm of latency over complete blocks: in a block, points
differ only on the two axes, and every combination of the compared values has a
time.  The design is balanced: the sums of squares of the two axes, of their
interaction and of the residual add up, and all means are over matched points.

If latency is a product of one factor per axis, the interaction is zero; it is large
where the best value of one axis depends on the other.  The residual is the variation
of the axes' effects between blocks.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pandas as pd

from dlas.analysis.matching import COMPARED, Blocks, blocks, timed
from dlas.stack.types import Floats

Z = 1.959963984540054
"""Half the width of a confidence interval of level 0.95, in standard deviations."""


@dataclass(frozen=True)
class Interaction:
    """The shares of variation that two axes explain."""

    axes: tuple[str, str]
    values: tuple[list[str], list[str]]
    """The compared values of both axes."""
    blocks: int
    """Complete blocks."""
    matched: int
    total: int
    """Points in them, and all points."""
    failed: int
    library: int
    """Points without a time, and points with a time whose compiler brings its own kernels, where an axis is
    the algorithm.
    """
    shares: tuple[float, float, float, float]
    """Of the first axis, the second, the interaction and the residual; they add up to 1. NaN where there is
    no block, or all times are the same.
    """
    noise: float
    """Expected share of the interaction from the uncertainty of the medians alone."""

    @property
    def incomplete(self) -> int:
        """Number of points with a time in incomplete blocks."""
        return max(0, self.total - self.matched - self.failed - self.library)

    @property
    def comparable(self) -> bool:
        """Whether anything could be compared."""
        return not np.isnan(self.shares[0])


def interactions(points: pd.DataFrame) -> list[Interaction]:
    """Return the analysis of each pair of axes, the largest interaction first.

    Parameters
    ----------
    points : DataFrame
        What :func:`dlas.analysis.roles.with_roles` returned.
    """
    explained = [interaction(points, *axes) for axes in pairs(points)]
    return sorted(
        explained, key=lambda pair: (not pair.comparable, -pair.shares[2] if pair.comparable else 0)
    )


def pairs(points: pd.DataFrame) -> Iterator[tuple[str, str]]:
    """Yield each pair of compared axes that have more than one value."""
    varying = [axis for axis in COMPARED if points[axis].nunique() > 1]
    yield from itertools.combinations(varying, 2)


def interaction(points: pd.DataFrame, first: str, second: str) -> Interaction:
    """Return the analysis of two axes over their complete blocks.

    The compared values are chosen to include as many points as possible:
    a value that most blocks lack is left out.
    """
    crossed = blocks(points, first, second)
    logs, variances = _logs(points, crossed)
    chosen = _chosen(~np.isnan(logs))
    complete = logs[np.ix_(*chosen)] if chosen else np.empty((0, 0, 0))
    shares, squares = _shares(complete) if complete.size else ((np.nan,) * 4, 0.0)
    noise = np.nan
    if squares > 0 and chosen:
        freedom = (complete.shape[1] - 1) * (complete.shape[2] - 1)
        noise = float(variances[np.ix_(*chosen)].mean()) * freedom / squares
    values = tuple(
        [order[place] for place in chosen[axis + 1]] if chosen else []
        for axis, order in enumerate(crossed.values)
    )
    return Interaction(
        axes=(first, second),
        values=(values[0], values[1]),
        blocks=len(complete),
        matched=complete.size,
        total=len(points),
        failed=int((~timed(points)).sum()),
        library=crossed.library,
        shares=shares,
        noise=noise,
    )


def _logs(points: pd.DataFrame, crossed: Blocks) -> tuple[Floats, Floats]:
    """Return log latency and its variance by block and values; per image along the batch axis."""
    share = points["batch"].to_numpy(dtype=float) if "batch" in crossed.axes else 1.0
    has_time = timed(points).to_numpy(dtype=bool)
    median, low, high = (
        np.log(np.where(has_time, points[name].to_numpy(dtype=float) / share, np.nan))
        for name in ("latency_s", "latency_low_s", "latency_high_s")
    )
    return crossed.of(median), crossed.of(((high - low) / (2 * Z)) ** 2)


def _chosen(present: npt.NDArray[np.bool_]) -> tuple[list[int], list[int], list[int]] | None:
    """Return blocks and values whose combinations all have a time, with as many points as possible.

    Greedy: values are left out one at a time, always the one without which most
    points match; the best selection seen is returned.
    """
    values_left = [list(range(size)) for size in present.shape[1:]]
    best: tuple[int, list[list[int]]] = (0, values_left)
    while min(map(len, values_left)) >= 2:
        best = max(best, (_matched(present, values_left), values_left), key=lambda state: state[0])
        smaller = [
            [[v for v in values if axis != at or v != value] for at, values in enumerate(values_left)]
            for axis in (0, 1)
            for value in values_left[axis]
        ]
        values_left = max(smaller, key=lambda state: (_matched(present, state), _held(present, state)))
    if not best[0]:
        return None
    first, second = best[1]
    complete = np.flatnonzero(present[:, first][:, :, second].all(axis=(1, 2)))
    return complete.tolist(), first, second


def _matched(present: npt.NDArray[np.bool_], places: list[list[int]]) -> int:
    inside = present[:, places[0]][:, :, places[1]]
    complete = int(inside.all(axis=(1, 2)).sum())
    return complete * len(places[0]) * len(places[1])


def _held(present: npt.NDArray[np.bool_], places: list[list[int]]) -> int:
    return int(present[:, places[0]][:, :, places[1]].sum())


def _shares(logs: Floats) -> tuple[tuple[float, float, float, float], float]:
    """Return the shares of the total sum of squares within blocks, and that sum.

    Parameters
    ----------
    logs : ndarray, [blocks, first, second]
        Without NaN.
    """
    centred = logs - logs.mean(axis=(1, 2), keepdims=True)
    total = float((centred**2).sum())
    if total <= 0:
        return (np.nan, np.nan, np.nan, np.nan), 0.0
    cells = centred.mean(axis=0)
    first, second = cells.mean(axis=1), cells.mean(axis=0)
    count, rows, columns = logs.shape
    both = cells - first[:, None] - second[None, :]
    squares = [count * columns * (first**2).sum(), count * rows * (second**2).sum(), count * (both**2).sum()]
    shares = [float(square) / total for square in squares]
    return (shares[0], shares[1], shares[2], max(0.0, 1 - sum(shares))), total
