"""Intervals for what was measured: medians, ratios of medians, shares."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

LEVEL = 0.95
RESAMPLES = 1000


def median_interval(samples: Sequence[float]) -> tuple[float, float, float]:
    """Return the median of the samples with its bootstrap interval.

    Parameters
    ----------
    samples : sequence of float, [n]

    Returns
    -------
    median, low, high : float
        Percentile interval of level 0.95 over 1,000 resamples from a fixed
        seed, so that the same samples always give the same interval.  A single
        sample is its own interval.
    """
    values = np.asarray(samples, dtype=float)
    medians = _resampled_medians(values, seed=0)
    low, high = np.quantile(medians, [(1 - LEVEL) / 2, (1 + LEVEL) / 2])
    return float(np.median(values)), float(low), float(high)


def ratio_interval(numerator: Sequence[float], denominator: Sequence[float]) -> tuple[float, float, float]:
    """Return the ratio of two medians with its bootstrap interval.

    Parameters
    ----------
    numerator, denominator : sequence of float
        Independent samples, not necessarily as many.
    """
    above, below = np.asarray(numerator, dtype=float), np.asarray(denominator, dtype=float)
    ratios = _resampled_medians(above, seed=0) / _resampled_medians(below, seed=1)
    low, high = np.quantile(ratios, [(1 - LEVEL) / 2, (1 + LEVEL) / 2])
    return float(np.median(above) / np.median(below)), float(low), float(high)


def wilson(successes: int, trials: int) -> tuple[float, float]:
    """Return the Wilson score interval of level 0.95 for a share.

    References
    ----------
    E. B. Wilson, Probable inference, the law of succession, and statistical
    inference. Journal of the American Statistical Association, 1927.
    """
    if trials == 0:
        return 0.0, 1.0
    z = 1.959963984540054
    share = successes / trials
    centre = share + z * z / (2 * trials)
    spread = z * math.sqrt(share * (1 - share) / trials + z * z / (4 * trials * trials))
    scale = 1 + z * z / trials
    return max(0.0, (centre - spread) / scale), min(1.0, (centre + spread) / scale)


def _resampled_medians(values: np.ndarray, seed: int) -> np.ndarray:
    chosen = np.random.default_rng(seed).integers(len(values), size=(RESAMPLES, len(values)))
    # Sorted, so that the interval does not depend on the order in which samples were taken.
    medians: np.ndarray = np.median(np.sort(values)[chosen], axis=1)
    return medians
