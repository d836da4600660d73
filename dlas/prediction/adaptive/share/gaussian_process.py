"""A Gaussian process over the points of a study, fitted to those that were measured.

Scikit-learn's has no kernel of names beside numbers, and fits its parameters without saying what is usual;
with ten points, that decides.  Here the parameters are those of largest posterior density: the likelihood of
what was measured times what is usual in sweeps (:data:`dlas.prediction.adaptive.share.covariance.USUAL`).

References
----------
Rasmussen, Williams: Gaussian Processes for Machine Learning, sections 2.2, 5.4.1 and 5.4.2.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.linalg import cho_factor, cho_solve, solve_triangular
from scipy.optimize import minimize
from scipy.stats import t

from dlas.prediction.adaptive.share.covariance import Covariance
from dlas.prediction.adaptive.share.space import Codes
from dlas.prediction.learning.intervals import LEVEL
from dlas.stack.types import Floats

FARTHEST = 3.0
"""Standard deviations that a parameter may be from what is usual."""
MOST_STEPS = 60
"""Most steps of a fit."""
MOST_FITTED = 400
"""The parameters are fitted to so many points at most; what is predicted follows from all."""
AT_ONCE = 4096
"""Points that are predicted together: it bounds the memory."""
TRUSTED = 8.0
"""The process's own word on its errors counts as much as those of so many points."""


@dataclass(frozen=True)
class GaussianProcess:
    """A Gaussian process of logarithms of latencies, fitted to some points."""

    covariance: Covariance
    parameters: Floats
    """Of the covariance."""
    rows: Codes
    """The points that it was fitted to; [m] of int."""
    logarithms: Floats
    """What was measured; [m]."""
    middle: float
    """Their mean, less what is usual of them."""
    factor: Floats
    """Lower Cholesky factor of their covariance; [m, m]."""
    weights: Floats
    """Their inverse covariance times what they differ from that; [m]."""
    errors: Floats
    """Of each of them, predicted from the others: what was measured less what was predicted; [m]."""
    deviations: Floats
    """The standard deviations that the process gave these errors; [m]."""

    @property
    def noise(self) -> float:
        """Variance of a measurement."""
        return float(np.exp(2 * self.parameters[0]))

    def predict(self, rows: Codes) -> tuple[Floats, Floats]:
        """Return the means and the variances of logarithms of latencies, the noise of measuring left out."""
        means, variances = np.zeros((2, len(rows)))
        for start in range(0, len(rows), AT_ONCE):
            piece = slice(start, start + AT_ONCE)
            across = self.covariance.between(self.parameters, self.rows, rows[piece])
            known = solve_triangular(self.factor, across, lower=True)
            means[piece] = self.middle + self.covariance.means(rows[piece]) + across.T @ self.weights
            variances[piece] = self.covariance.variances(self.parameters, rows[piece]) - (known**2).sum(
                axis=0
            )
        return means, np.maximum(variances, 0.0)

    def joint(self, rows: Codes) -> Floats:
        """Return the covariance of logarithms of latencies after what was measured, [rows, rows]."""
        across = self.covariance.between(self.parameters, self.rows, rows)
        known = solve_triangular(self.factor, across, lower=True)
        return np.asarray(self.covariance.between(self.parameters, rows, rows) - known.T @ known)

    def half_widths(self, variances: Floats) -> Floats:
        """Return half of the widths of intervals that cover :data:`LEVEL` of new measurements.

        The process says how sure it is of each point; how far it can be trusted in that follows from the
        points that it was fitted to, each predicted from the others.
        """
        squares = ((self.errors / self.deviations) ** 2).sum()
        scale = np.sqrt((TRUSTED + squares) / (TRUSTED + len(self.errors)))
        quantile = t.ppf((1 + LEVEL) / 2, TRUSTED + len(self.errors))
        return np.asarray(quantile * scale * np.sqrt(variances + self.noise), dtype=np.float64)


def fit(covariance: Covariance, rows: Codes, logarithms: Floats) -> GaussianProcess:
    """Return the process of the parameters that what was measured makes most likely.

    Parameters
    ----------
    rows : array [m] of int
        The points that were measured.
    logarithms : array [m]
        Of their latencies.
    """
    usual, doubt = covariance.usual()
    some = np.arange(len(rows))
    if len(rows) > MOST_FITTED:
        some = np.random.default_rng(len(rows)).choice(some, MOST_FITTED, replace=False)
    unusual = logarithms[some] - covariance.means(rows[some])
    above = unusual - unusual.mean()

    def cost(parameters: Floats) -> tuple[float, Floats]:
        matrix, slopes = covariance.with_slopes(parameters, rows[some])
        lower, _ = cho_factor(matrix, lower=True)
        inverse = cho_solve((lower, True), np.eye(len(some)))
        weights = inverse @ above
        rest = inverse - np.outer(weights, weights)
        away = (parameters - usual) / doubt
        value = above @ weights / 2 + np.log(np.diag(lower)).sum() + away @ away / 2
        slope = np.array([(rest * one).sum() / 2 for one in slopes]) + away / doubt
        return float(value), slope

    bounds = list(zip(usual - FARTHEST * doubt, usual + FARTHEST * doubt, strict=True))
    found = minimize(cost, usual, jac=True, method="L-BFGS-B", bounds=bounds, options={"maxiter": MOST_STEPS})
    return _fitted(covariance, found.x, rows, logarithms)


def _fitted(covariance: Covariance, parameters: Floats, rows: Codes, logarithms: Floats) -> GaussianProcess:
    """Return the process of some parameters."""
    noise = np.exp(2 * parameters[0]) * np.eye(len(rows))
    matrix = covariance.between(parameters, rows, rows) + noise
    lower = np.tril(cho_factor(matrix, lower=True)[0])
    inverse = cho_solve((lower, True), np.eye(len(rows)))
    unusual = logarithms - covariance.means(rows)
    middle = float(unusual.mean())
    weights = inverse @ (unusual - middle)
    own = np.diag(inverse)
    return GaussianProcess(
        covariance=covariance,
        parameters=parameters,
        rows=rows,
        logarithms=logarithms,
        middle=middle,
        factor=lower,
        weights=weights,
        errors=weights / own,
        deviations=1 / np.sqrt(own),
    )
