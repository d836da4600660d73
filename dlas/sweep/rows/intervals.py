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
    for rows, ordered in _ordered(samples):
        n = ordered.shape[1]
        intervals[rows, 0] = ordered[:, n // 2]
        if n % 2 == 0:
            intervals[rows, 0] = np.mean(ordered[:, n // 2 - 1 : n // 2 + 1], axis=1)
        intervals[rows, 1:] = _quantiles(*_distinct(ordered, stream=0))
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
    lengths = np.array([(len(a), len(b)) for a, b in zip(numerators, denominators, strict=True)])
    for above, below in np.unique(lengths.reshape(-1, 2), axis=0).tolist():
        alike = np.flatnonzero((lengths == (above, below)).all(axis=1))
        for start in range(0, len(alike), ROWS_AT_ONCE):
            rows = alike[start : start + ROWS_AT_ONCE]
            chosen = rows.tolist()
            logs = [
                _log_medians(np.sort(np.stack([samples[row] for row in chosen]), axis=1), stream)
                for samples, stream in zip((numerators, denominators), streams, strict=True)
            ]
            intervals[rows, 0] = logs[0][0] - logs[1][0]
            # Two single samples have one ratio, whatever is drawn.
            intervals[rows, 1:] = np.quantile(logs[0][1] - logs[1][1], QUANTILES, axis=1).T
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


def _ordered(samples: Sequence[Floats]) -> Iterator[tuple[npt.NDArray[np.intp], Floats]]:
    """Yield rows of one length, :data:`ROWS_AT_ONCE` at a time, and their samples in order, [rows, n]."""
    lengths = np.fromiter(map(len, samples), dtype=np.intp, count=len(samples))
    for n in np.unique(lengths[lengths > 0]).tolist():
        alike = np.flatnonzero(lengths == n)
        for start in range(0, len(alike), ROWS_AT_ONCE):
            rows = alike[start : start + ROWS_AT_ONCE]
            yield (
                rows,
                np.sort(np.concatenate([samples[row] for row in rows.tolist()]).reshape(-1, n), axis=1),
            )


def _distinct(ordered: Floats, stream: int) -> tuple[Floats, npt.NDArray[np.intp]]:
    """Return the different medians of each row's resamples, [rows, m], and how many have each, [m]."""
    low, high, counts, _ = _middle(ordered.shape[1], stream)
    return (ordered[:, low] + ordered[:, high]) / 2, counts


def _log_medians(ordered: Floats, stream: int) -> tuple[Floats, Floats]:
    """Return the logarithms of each row's median, and of the medians of its resamples, [rows, RESAMPLES]."""
    n = ordered.shape[1]
    middle = (ordered[:, (n - 1) // 2] + ordered[:, n // 2]) / 2
    medians, _ = _distinct(ordered, stream)
    return np.log(middle), np.log(medians)[:, _middle(n, stream)[3]]


def _quantiles(values: Floats, counts: npt.NDArray[np.intp]) -> Floats:
    """Return the :data:`QUANTILES` of values that count several times each, as ``np.quantile`` of all.

    Parameters
    ----------
    values : ndarray, [rows, m]
    counts : ndarray, [m]

    Returns
    -------
    ndarray, [rows, 2]
    """
    order = np.argsort(values, axis=1)
    upto = np.cumsum(counts[order], axis=1)
    places = np.asarray(QUANTILES) * (RESAMPLES - 1)
    nearest = np.floor(places).astype(int)
    found = [
        np.take_along_axis(values, np.take_along_axis(order, (upto <= place).sum(axis=1)[:, None], 1), 1)
        for place in (*nearest, *(nearest + 1))
    ]
    four = np.concatenate(found, axis=1).reshape(len(values), 2, 2)
    # Four order statistics have the quantiles of all: those of each pair, at the place between them.
    between = places - nearest
    low, high = four[:, 0], four[:, 1]
    gap = high - low
    quantiles: Floats = np.where(between >= 0.5, high - gap * (1 - between), low + gap * between)
    return quantiles


@functools.lru_cache(maxsize=1024)
def _middle(n: int, stream: int) -> tuple[npt.NDArray[np.intp], ...]:
    """Return the different pairs of middle positions of resamples of ``n`` samples.

    Returns
    -------
    low, high, counts : ndarray, [m]
        The lower and upper position, and the number of resamples that have them.
    which : ndarray, [RESAMPLES]
        The pair of each resample.
    """
    chosen = np.random.default_rng(stream).integers(n, size=(RESAMPLES, n))
    lower, upper = (n - 1) // 2, n // 2
    chosen.partition((lower, upper), axis=1)
    pairs, which, counts = np.unique(
        chosen[:, [lower, upper]], axis=0, return_inverse=True, return_counts=True
    )
    return pairs[:, 0], pairs[:, 1], counts, which.reshape(-1)
