"""Where the level of a series changes: optimal partitioning with a bounded loss.

The partition minimises the sum over values of their squared distances from their segment's level, in units
of their variances and at most ``OUTLYING`` penalties each, plus a penalty a change.  In the best partition
the levels on both sides of each change differ by at least the root of the penalty in standard errors.  The
bound is what makes a single value no change: one that is far off costs less as an outlier than the two
changes around it, two in a row cost more.

References
----------
P. Fearnhead and G. Rigaill, Changepoint detection in the presence of outliers, JASA, 2019.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from dlas.stack.types import Floats

OUTLYING = 1.5
"""Penalties that a value costs at most: more than one, so that two in a row are a segment, and fewer than
two, so that one alone is none.
"""
FEWEST = 2
"""Values of a segment."""
ROUNDS = 10
"""Most times that a level is fitted to the values that are near it."""


@dataclass(frozen=True)
class Segment:
    """Values in a row that share a level."""

    start: int
    stop: int
    level: float
    error: float
    """Standard error of the level."""
    outlying: tuple[int, ...]
    """Places of values too far from the level to count for it."""


def segments_of(values: Floats, variances: Floats, penalty: float) -> list[Segment]:
    """Return the segments of a series, from its start to its end.

    Parameters
    ----------
    values, variances : ndarray, [n]
        The series, and the variance of each value about its level.
    penalty : float
        What a change costs, in squared standard errors.
    """
    n, most = len(values), OUTLYING * penalty
    whole = _fitted(values, variances, most)
    # No partition saves more than the loss without a change.
    if n < 2 * FEWEST or whole[0] <= penalty:
        return [_segment(values, variances, most, 0, n)]
    best = np.full(n + 1, np.inf)
    best[0] = -penalty
    last = np.zeros(n + 1, dtype=int)
    for stop in range(FEWEST, n + 1):
        for start in (0, *range(FEWEST, stop - FEWEST + 1)):
            loss, _, _ = _fitted(values[start:stop], variances[start:stop], most)
            if (cost := best[start] + loss + penalty) < best[stop]:
                best[stop], last[stop] = cost, start
    ends = [n]
    while ends[-1]:
        ends.append(int(last[ends[-1]]))
    ends.reverse()
    return [_segment(values, variances, most, start, stop) for start, stop in itertools.pairwise(ends)]


def _fitted(values: Floats, variances: Floats, most: float) -> tuple[float, float, npt.NDArray[np.bool_]]:
    """Return the bounded loss of values about their level, the level, and which of them count for it."""
    found = _fitted_from(float(np.median(values)), values, variances, most)
    if found[2].all():
        return found
    # The middle between two groups may be near neither: the level then starts at each value.
    starts = [found, *(_fitted_from(float(value), values, variances, most) for value in values)]
    return min(starts, key=lambda each: each[0])


def _fitted_from(
    level: float, values: Floats, variances: Floats, most: float
) -> tuple[float, float, npt.NDArray[np.bool_]]:
    """Return the same for the level that is reached from another."""
    for _ in range(ROUNDS):
        near = (values - level) ** 2 < most * variances
        fitted = float(np.average(values[near], weights=1 / variances[near])) if near.any() else level
        if fitted == level:
            break
        level = fitted
    distances = (values - level) ** 2 / variances
    return float(np.minimum(distances, most).sum()), level, distances < most


def _segment(values: Floats, variances: Floats, most: float, start: int, stop: int) -> Segment:
    _, level, near = _fitted(values[start:stop], variances[start:stop], most)
    counted = variances[start:stop][near] if near.any() else variances[start:stop]
    outlying = tuple((start + np.flatnonzero(~near)).tolist())
    return Segment(start, stop, level, float((1 / counted).sum() ** -0.5), outlying)
