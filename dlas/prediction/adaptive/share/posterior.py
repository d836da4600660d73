"""What is believed of latencies that are not measured, and what measuring one of them would change."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from dlas.prediction.adaptive.share.covariance import Covariance
from dlas.prediction.adaptive.share.gaussian_process import GaussianProcess
from dlas.prediction.adaptive.share.space import Codes, Space
from dlas.prediction.adaptive.share.work import work_of
from dlas.stack.types import Floats

MOST_CANDIDATES = 1_000
"""Of more points, so many are looked at, at random."""
NODES, WEIGHTS = np.polynomial.hermite_e.hermegauss(15)
"""What a measurement may come to, in standard deviations from what is expected, and how likely."""


class Posterior:
    """What is believed of points.

    Parameters
    ----------
    rows : array of int
        The points.
    means : array [rows]
        What is expected of the logarithms of their latencies.
    matrix : array [rows, rows]
        Covariance of what is not known of them.
    noise : float
        Variance of a measurement.
    """

    def __init__(self, rows: Codes, means: Floats, matrix: Floats, noise: float) -> None:
        self.rows, self.means, self._matrix, self._noise = rows, means, matrix, noise
        self._positions = {place: position for position, place in enumerate(rows.tolist())}

    @classmethod
    def at_first(cls, space: Space, rng: np.random.Generator) -> Posterior:
        """Return what is believed before anything is measured."""
        covariance = Covariance.of(space, work_of(space, {}))
        usual, _ = covariance.usual()
        rows = some(np.arange(len(space)), rng)
        return cls(
            rows, covariance.means(rows), covariance.between(usual, rows, rows), float(np.exp(2 * usual[0]))
        )

    @classmethod
    def after(cls, process: GaussianProcess, rows: Codes) -> Posterior:
        """Return what is believed after what a process was fitted to."""
        return cls(rows, process.predict(rows)[0], process.joint(rows), process.noise)

    def copy(self) -> Posterior:
        """Return a posterior that changes by itself."""
        return Posterior(self.rows, self.means, self._matrix, self._noise)

    def see(self, place: int) -> None:
        """Count a point as measured, with what is expected of it."""
        if place in self._positions:
            own = self._matrix[self._positions[place]]
            variance = own[self._positions[place]] + self._noise
            self._matrix = self._matrix - np.outer(own, own) / variance

    def total_variance(self) -> float:
        """Return the sum of the variances."""
        return float(np.trace(self._matrix))

    def variance_reduction(self, places: Codes) -> Floats:
        """Return how much variance measuring each of some points takes away from all.

        A point that is not looked at takes nothing away.
        """
        columns, known = self._columns(places)
        reduction = (columns**2).sum(axis=0) / self._variances(places)
        return np.asarray(np.where(known, reduction, 0.0))

    def knowledge_gradient(self, places: Codes, rivals: Codes, least: Floats) -> Floats:
        """Return by how much measuring each of some points is expected to shorten what looks fastest.

        It is the knowledge gradient: a measurement changes what is expected of all points that are like it,
        and what looks fastest afterwards is on average faster than what looks fastest now. Of a point that
        cannot change this, the sum over all groups of rivals is 0.

        Parameters
        ----------
        rivals : array [n] of int
            Number of each point's group of rivals.
        least : array [groups]
            Logarithm of the shortest latency that was measured in each group, infinite where there is none.

        References
        ----------
        Frazier, Powell, Dayanik: The knowledge-gradient policy for correlated normal beliefs, 2009.
        """
        own = rivals[self.rows]
        order = np.argsort(own, kind="stable")
        groups, starts = np.unique(own[order], return_index=True)
        bound = least[groups][:, None]

        if len(starts) == len(order) and np.isinf(bound).all():
            return np.zeros(len(places))

        def fastest(means: Floats) -> Floats:
            return np.minimum(np.minimum.reduceat(means[order], starts, axis=0), bound)

        now = fastest(self.means[:, None])
        told = np.isfinite(now[:, 0])
        columns, known = self._columns(places)
        shifts, after = columns / np.sqrt(self._variances(places)), np.zeros(len(places))
        for node, weight in zip(NODES, WEIGHTS / WEIGHTS.sum(), strict=True):
            after += weight * fastest(self.means[:, None] + node * shifts)[told].sum(axis=0)
        return np.asarray(np.where(known, np.maximum(now[told].sum() - after, 0.0), 0.0))

    def _columns(self, places: Codes) -> tuple[Floats, npt.NDArray[np.bool_]]:
        """Return the covariance of all points with some, [rows, places], and which of these are looked at."""
        at = np.array([self._positions.get(place, -1) for place in places.tolist()], dtype=np.intp)
        return self._matrix[:, at], at >= 0

    def _variances(self, places: Codes) -> Floats:
        """Return the variance of a measurement of each of some points."""
        at = np.array([self._positions.get(place, -1) for place in places.tolist()], dtype=np.intp)
        return np.asarray(np.diag(self._matrix)[at] + self._noise)


def some(rows: Codes, rng: np.random.Generator) -> Codes:
    """Return the points, or of very many some at random."""
    return rows if len(rows) <= MOST_CANDIDATES else np.sort(rng.choice(rows, MOST_CANDIDATES, replace=False))
