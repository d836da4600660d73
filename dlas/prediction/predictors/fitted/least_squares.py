"""Least squares, and least absolute errors, with rates that are not negative."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from scipy.optimize import linprog, nnls
from scipy.sparse import csr_array, eye_array, hstack

from dlas.stack.types import Floats

PULL = 2.0
"""What a difference of alike rates counts, where the error of a row counts 1."""
ROUNDS = 6
"""Fits, each with the weights that follow from the errors of the one before."""
HUBER = 1.5
"""Standard deviations beyond which errors count by their size, not by their square."""
NORMAL = 0.6745
"""Median of the sizes of normally distributed errors, in standard deviations."""


def relative_rates(features: Floats, target: Floats) -> Floats:
    """Return the non-negative rates with the least ``sum(((features @ rates - target) / target) ** 2)``.

    Parameters
    ----------
    features : array [n, columns]
        Not negative.
    target : array [n]
        Positive.
    """
    relative = features / target[:, None]
    return _solved(relative, np.ones(len(target)), _norms(relative), np.zeros((0, features.shape[1])))


def median_rates(features: Floats, target: Floats) -> Floats:
    """Return the non-negative rates with the least ``sum(abs((features @ rates - target) / target))``.

    Of one column that is the weighted median of ratios: half of the rows may be anything. Parameters are
    those of :func:`relative_rates`.
    """
    relative = features / target[:, None]
    scale = _norms(relative)
    rows, columns = relative.shape
    # A linear programme: each error is the difference of two numbers that are not negative.
    apart = hstack([csr_array(relative / scale), eye_array(rows), -eye_array(rows)], format="csr")
    counted = np.concatenate([np.zeros(columns), np.ones(2 * rows)])
    found = linprog(counted, A_eq=apart, b_eq=np.ones(rows), method="highs")
    return np.asarray(found.x[:columns] / scale)


def robust_rates(features: Floats, target: Floats, alike: Sequence[tuple[int, int]]) -> Floats:
    """Return the non-negative rates with the least sum of Huber's loss of ``features @ rates - target``.

    Parameters
    ----------
    features : array [n, columns]
        Not negative.
    target : array [n]
        Positive.
    alike : sequence of (int, int)
        Pairs of columns whose rates are drawn to each other: what few rows leave open is then as it is
        elsewhere.

    References
    ----------
    P. J. Huber, Robust estimation of a location parameter, 1964; by reweighted least squares.
    """
    shares, known = features / target.mean(), target / target.mean()
    scale = _norms(shares)
    pulls = np.zeros((len(alike), features.shape[1]))
    for row, (one, other) in enumerate(alike):
        # In shares of the target, as the columns have them in the mean of their rows.
        share = PULL * np.sqrt(scale[one] * scale[other] / len(target))
        pulls[row, one], pulls[row, other] = share / scale[one], -share / scale[other]
    weights = np.ones(len(target))
    for _ in range(ROUNDS):
        rates = _solved(shares * weights[:, None], known * weights, scale, pulls)
        errors = np.abs(shares @ rates - known)
        most = HUBER * np.median(errors) / NORMAL
        weights = np.sqrt(np.minimum(1, most / np.maximum(errors, np.finfo(float).tiny)))
        if not most:  # at least half of the rows are met exactly
            break
    return rates


def _norms(columns: Floats) -> Floats:
    """Return the norms of columns, 1 of those that are 0."""
    norms = np.linalg.norm(columns, axis=0)
    return np.where(norms > 0, norms, 1.0)


def _solved(columns: Floats, known: Floats, scale: Floats, pulls: Floats) -> Floats:
    """Return the rates; ``pulls`` are further rows, of scaled columns, whose sums are to be 0."""
    # Columns of numbers from 1 to 1e12 would leave the solver without digits.
    rows = np.vstack([columns / scale, pulls])
    rates, _ = nnls(rows, np.concatenate([known, np.zeros(len(pulls))]), maxiter=100 * columns.shape[1])
    return np.asarray(rates / scale)
