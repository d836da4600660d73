"""How wrong predictions are: errors relative and absolute, ranks, and what intervals cover."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy import stats

Array = npt.NDArray[np.float64]
WITHIN = (0.05, 0.10, 0.15, 0.20)
"""Relative errors for which the share of predictions within them is told."""


@dataclass(frozen=True)
class Scores:
    """How wrong the predictions of some rows are.

    Parameters
    ----------
    rows : int
    mape : float
        Mean absolute error relative to the measured value.
    within : tuple of float
        Shares of the rows whose relative error is at most each of :data:`WITHIN`.
    rmse, mae : float
        Root mean square and mean absolute error, in the target's unit.
    rmse_of_mean : float
        ``rmse`` over the mean of the measured values.
    spearman, kendall : float or None
        Rank correlations; None where fewer than two values differ.
    coverage : float or None
        Share of the rows inside their interval; None without intervals.
    width : float or None
        Median of upper over lower bound, less one; None without intervals.
    """

    rows: int
    mape: float
    within: tuple[float, ...]
    rmse: float
    mae: float
    rmse_of_mean: float
    spearman: float | None
    kendall: float | None
    coverage: float | None = None
    width: float | None = None


def relative_errors(predicted: Array, measured: Array) -> Array:
    """Return the absolute errors over the measured values.

    Parameters
    ----------
    predicted, measured : array [n]
        In one unit, positive.
    """
    return np.asarray(np.abs(predicted - measured) / measured)


def score(predicted: Array, measured: Array, low: Array | None = None, high: Array | None = None) -> Scores:
    """Return how wrong predictions are.

    Parameters
    ----------
    predicted, measured : array [n]
        In one unit, positive; at least one row.
    low, high : array [n], optional
        Bounds of the predictions' intervals.
    """
    relative, errors = relative_errors(predicted, measured), predicted - measured
    rmse = float(np.sqrt(np.mean(errors**2)))
    ranked = len(np.unique(predicted)) > 1 and len(np.unique(measured)) > 1
    coverage = width = None
    if low is not None and high is not None:
        coverage = float(np.mean((low <= measured) & (measured <= high)))
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
        width=width,
    )
