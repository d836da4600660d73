"""Bootstrap intervals of level 0.95: of medians, of ratios of medians, and of rank correlations.

A resample of n samples is n positions drawn with replacement, and its median
needs only the middle one or two of those positions in the ordered samples.
The positions depend on n alone, so they are drawn once for each n and used for
all rows of n samples.  The random numbers have a fixed seed: the same samples
always give the same interval, in any order.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator, Sequence

import numpy as np
import numpy.typing as npt

from dlas.stack.types import Floats

LEVEL = 0.95
RESAMPLES = 1000
QUANTILES = ((1 - LEVEL) / 2, (1 + LEVEL) / 2)
ROWS_AT_ONCE = 512
"""Number of rows whose resampled medians are in memory at a time."""


def median(samples: Sequence[float]) -> tuple[float, float, float]:
    """Return the median of the samples with its interval of level 0.95.

    Parameters
    ----------
    samples : sequence of float, [n]
        At least one; a single sample is its own interval.

    Returns
    -------
    median, low, high : float
        In the samples' unit.
    """
    middle, low, high = medians([np.asarray(samples, dtype=float)])[0].tolist()
    return middle, low, high


def medians(samples: Sequence[Floats]) -> Floats:
    """Return each row's median with its interval of level 0.95.

    Parameters
    ----------
    samples : sequence of ndarray, [rows][n]
        Rows may have different n; one without samples gives NaN.

    Returns
    -------
    ndarray, [rows, 3]
        Median, low, high, in the samples' unit.
    """
    intervals = np.full((len(samples), 3), np.nan)
    # A single sample is its own interval.
    for row in (row for row, values in enumerate(samples) if len(values) == 1):
        intervals[row] = samples[row][0]
    for rows in _portions(samples):
        with_samples = [samples[row] for row in rows]
        intervals[rows, 0] = [np.median(values) for values in with_samples]
        intervals[rows, 1:] = np.quantile(_resampled(with_samples, stream=0), QUANTILES, axis=1).T
    return intervals


def ratios(
    numerators: Sequence[Floats], denominators: Sequence[Floats], streams: tuple[int, int] = (0, 1)
) -> Floats:
    """Return each ratio of two rows' medians with its interval of level 0.95.

    The quantiles are taken of the logarithm, so that exchanging numerators and
    denominators, and the streams with them, gives exactly the inverse interval.

    Parameters
    ----------
    numerators, denominators : sequence of ndarray, [pairs][n]
        Positive samples, at least one a row.
    streams : pair of int
        Seeds of the random numbers for numerators and for denominators; they differ,
        or the errors of both would be correlated.

    Returns
    -------
    ndarray, [pairs, 3]
        Ratio, low, high.
    """
    intervals = np.empty((len(numerators), 3))
    # Two single samples have one ratio, which needs no resampling.
    pairs = zip(numerators, denominators, strict=True)
    single = np.array([len(a) == 1 == len(b) for a, b in pairs], dtype=bool)
    for row in np.flatnonzero(single).tolist():
        intervals[row] = np.log(numerators[row][0]) - np.log(denominators[row][0])
    several = np.flatnonzero(~single)
    for start in range(0, len(several), ROWS_AT_ONCE):
        rows = several[start : start + ROWS_AT_ONCE]
        above, below = [numerators[row] for row in rows], [denominators[row] for row in rows]
        intervals[rows, 0] = [
            np.log(np.median(a)) - np.log(np.median(b)) for a, b in zip(above, below, strict=True)
        ]
        logs = np.log(_resampled(above, streams[0])) - np.log(_resampled(below, streams[1]))
        intervals[rows, 1:] = np.quantile(logs, QUANTILES, axis=1).T
    return np.exp(intervals)


def rank_correlation(x: Floats, y: Floats) -> tuple[float, float, float]:
    """Return Spearman's rank correlation of two quantities with its interval of level 0.95.

    Parameters
    ----------
    x, y : ndarray, [n]
        One number for each item (such as a network), no NaN.

    Returns
    -------
    correlation, low, high : float
        The items are resampled; a resample in which either quantity is constant
        has no correlation and is left out.  NaN where either is constant in all items.
    """
    if len(x) < 2 or np.ptp(x) == 0 or np.ptp(y) == 0:
        return np.nan, np.nan, np.nan
    chosen = np.random.default_rng(0).integers(len(x), size=(RESAMPLES, len(x)))
    resampled = _correlations(x[chosen], y[chosen])
    low, high = np.nanquantile(resampled, QUANTILES)
    return float(_correlations(x[None], y[None])[0]), float(low), float(high)


def _correlations(x: Floats, y: Floats) -> Floats:
    """Return the correlation of the ranks in each line, NaN where a line is constant."""
    import pandas as pd

    ranks = [pd.DataFrame(values).rank(axis=1).to_numpy() for values in (x, y)]
    a, b = (rank - rank.mean(axis=1, keepdims=True) for rank in ranks)
    spread = np.sqrt((a**2).sum(axis=1) * (b**2).sum(axis=1))
    ranked: Floats = np.where(spread > 0, (a * b).sum(axis=1) / np.where(spread > 0, spread, 1), np.nan)
    return ranked


def _portions(samples: Sequence[Floats]) -> Iterator[list[int]]:
    """Yield the rows that have several samples, :data:`ROWS_AT_ONCE` at a time."""
    rows = [row for row, values in enumerate(samples) if len(values) > 1]
    for start in range(0, len(rows), ROWS_AT_ONCE):
        yield rows[start : start + ROWS_AT_ONCE]


def _resampled(samples: Sequence[Floats], stream: int) -> Floats:
    """Return the medians of each row's resamples, [rows, RESAMPLES]."""
    resampled = np.empty((len(samples), RESAMPLES))
    lengths = np.array([len(values) for values in samples])
    for n in np.unique(lengths):
        rows = np.flatnonzero(lengths == n)
        ordered = np.sort(np.stack([samples[row] for row in rows.tolist()]), axis=1)
        low, high = _middle(int(n), stream)
        resampled[rows] = (ordered[:, low] + ordered[:, high]) / 2
    return resampled


@functools.lru_cache(maxsize=1024)
def _middle(n: int, stream: int) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.int32]]:
    """Return the lower and upper middle position of each resample of ``n`` samples, [RESAMPLES]."""
    chosen = np.random.default_rng(stream).integers(n, size=(RESAMPLES, n))
    lower, upper = (n - 1) // 2, n // 2
    chosen.partition((lower, upper), axis=1)
    return chosen[:, lower].astype(np.int32), chosen[:, upper].astype(np.int32)
