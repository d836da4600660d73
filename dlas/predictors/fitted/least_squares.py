"""Least squares of relative errors."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from scipy.optimize import nnls

Array = npt.NDArray[np.float64]


def relative_rates(features: Array, target: Array) -> Array:
    """Return the non-negative rates with the least ``sum(((features @ rates - target) / target) ** 2)``.

    Parameters
    ----------
    features : array [n, columns]
        Not negative.
    target : array [n]
        Positive.
    """
    relative = features / target[:, None]
    # Columns of numbers from 1 to 1e12 would leave the solver without digits.
    scale = np.linalg.norm(relative, axis=0)
    scale = np.where(scale > 0, scale, 1.0)
    rates, _ = nnls(relative / scale, np.ones(len(target)), maxiter=100 * features.shape[1])
    return np.asarray(rates / scale)
