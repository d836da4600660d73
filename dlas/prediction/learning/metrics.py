"""How wrong predictions are: errors relative and absolute, ranks, and what intervals cover."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy import stats

from dlas.stack.types import Floats

WITHIN = (0.05, 0.10, 0.15, 0.20)
"""Relative errors for which the share of predictions within them is told."""
RESAMPLED = 1000
"""Draws of groups for the standard error of the coverage."""


@dataclass(frozen=True)
class Scores:
    """How wrong the predictions of some rows are."""

    rows: int
    mape: float
    """Mean absolute error relative to the measured value."""
    within: tuple[float, ...]
    """Shares of the rows whose relative error is at most each of :data:`WITHIN`."""
    rmse: float
    mae: float
    """Root mean square and mean absolute error, in the target's unit."""
    rmse_of_mean: float
    """``rmse`` over the mean of the measured values."""
    spearman: float | None
    kendall: float | None
    """Rank correlations; None where fewer than two values differ."""
    coverage: float | None = None
    """Share of the rows inside their interval; None without intervals."""
    coverage_error: float | None = None
    """Standard error of the coverage over draws of groups; None without intervals or with one group."""
    width: float | None = None
    """Median of upper over lower bound, less one; None without intervals."""


def relative_errors(predicted: Floats, measured: Floats) -> Floats:
    """Return the absolute errors over the measured values.

    Parameters
    ----------
    predicted, measured : array [n]
        In one unit, positive.
    """
    return np.asarray(np.abs(predicted - measured) / measured)


def score(
    predicted: Floats,
    measured: Floats,
    low: Floats | None = None,
    high: Floats | None = None,
    groups: Sequence[str] = (),
) -> Scores:
    """Return how wrong predictions are.

    Parameters
    ----------
    predicted, measured : array [n]
        In one unit, positive; at least one row.
    low, high : array [n], optional
        Bounds of the predictions' intervals.
    groups : sequence of str, length n, optional
        Rows of one group err together.
    """
    relative, errors = relative_errors(predicted, measured), predicted - measured
    rmse = float(np.sqrt(np.mean(errors**2)))
    ranked = len(np.unique(predicted)) > 1 and len(np.unique(measured)) > 1
    coverage = coverage_error = width = None
    if low is not None and high is not None:
        covered = (low <= measured) & (measured <= high)
        coverage, coverage_error = float(np.mean(covered)), _error_over_groups(covered, groups)
        width = float(np.median(high / low) - 1)
    return Scores(
        rows=len(measured),
        mape=float(relative.mean()),
        within=tuple(float(np.mean(relative <= limit)) for limit in WITHIN),
        rmse=rmse,
        mae=float(np.abs(errors).mean()),
        rmse_of_mean=rmse / float(measured.mean()),
        spearman=float(stats.spearmanr(predicted, measured).statistic) if ranked else None,
        kendall=float(stats.kendalltau(predicted, measured).statistic) if ranked else None,
        coverage=coverage,
        coverage_error=coverage_error,
        width=width,
    )


def _error_over_groups(covered: npt.NDArray[np.bool_], groups: Sequence[str]) -> float | None:
    """Return the standard deviation of the share that is covered, over draws of groups with replacement."""
    names, places, sizes = np.unique(np.asarray(groups), return_inverse=True, return_counts=True)
    if len(names) < 2:
        return None
    hits = np.bincount(places, weights=covered)
    drawn = np.random.default_rng(0).integers(len(names), size=(RESAMPLED, len(names)))
    return float(np.std(hits[drawn].sum(axis=1) / sizes[drawn].sum(axis=1)))
