"""Least squares of relative errors."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
from scipy.optimize import nnls

Array = npt.NDArray[np.float64]


def relative_rates(features: Array, target: Array, alike: Sequence[tuple[int, int]] = ()) -> Array:
    """Return the non-negative rates with the least ``sum(((features @ rates - target) / target) ** 2)``.

    Parameters
    ----------
    features : array [n, columns]
        Not negative.
    target : array [n]
        Positive.
    alike : sequence of (int, int), optional
        Pairs of columns whose rates are drawn to each other, each with the weight of one row: what few rows
        leave open is then as it is elsewhere.
    """
    relative = features / target[:, None]
    # Columns of numbers from 1 to 1e12 would leave the solver without digits.
    scale = np.linalg.norm(relative, axis=0)
    scale = np.where(scale > 0, scale, 1.0)
    pulls = np.zeros((len(alike), features.shape[1]))
    for row, (one, other) in enumerate(alike):
        # In shares of the target, as the columns have them in the mean of their rows.
        share = np.sqrt(scale[one] * scale[other] / len(target))
        pulls[row, one], pulls[row, other] = share / scale[one], -share / scale[other]
    known = np.concatenate([np.ones(len(target)), np.zeros(len(alike))])
    rates, _ = nnls(np.vstack([relative / scale, pulls]), known, maxiter=100 * features.shape[1])
    return np.asarray(rates / scale)
