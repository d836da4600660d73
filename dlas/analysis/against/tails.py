"""How far errors of ratios reach: some points differ between runs by several times what most do."""

from __future__ import annotations

import functools
from dataclasses import dataclass

import numpy as np
from scipy import optimize, stats

from dlas.stack.types import Floats

SHARES = (0.01, 0.02, 0.05, 0.1, 0.2, 0.3)
FACTORS = (2.0, 3.0, 4.0, 6.0, 8.0, 12.0)
SCALES = (0.6, 0.7, 0.8, 0.9, 1.0, 1.1, 1.2)
"""Tails that are tried: shares of wide points, how many times as wide they are, and the scale of both."""
FARTHEST = 1e6
"""Standard errors beyond which no quantile is looked for."""


@dataclass(frozen=True)
class Tails:
    """The distribution of errors in standard errors: Student's, for a share of the points stretched."""

    freedom: float
    """Degrees of freedom."""
    share: float = 0.0
    """Of points that differ by more."""
    factor: float = 1.0
    """How many times as much that is."""

    def chances(self, distances: Floats) -> Floats:
        """Return how likely an error is at least so far from none, to either side."""
        far = np.abs(distances)
        chances: Floats = 2 * (
            (1 - self.share) * stats.t.sf(far, self.freedom)
            + self.share * stats.t.sf(far / self.factor, self.freedom)
        )
        return chances

    @functools.cache  # noqa: B019  # one of few numbers, which hold nothing
    def distance(self, chance: float) -> float:
        """Return the distance from none that errors have with a chance, to either side together."""

        def above(far: float) -> float:
            return float(self.chances(np.array([far]))[0]) - chance

        return float(optimize.brentq(above, 0.0, FARTHEST))


def likeliest(errors: Floats, freedom: float) -> tuple[Tails, float, float]:
    """Return the tails that make errors of unchanged points likeliest, and the scale of standard errors.

    A share of wide points is two numbers more to fit, and has to be worth them (Schwarz's criterion).

    Parameters
    ----------
    errors : array [points]
        In standard errors as slices and runs tell them.
    freedom : float
        Degrees of freedom of these.

    Returns
    -------
    tails : Tails
    scale : float
    worth : float
        Logarithm of the likelihood, less what a share of wide points costs.
    """
    scales, factors, shares = (np.array(each) for each in (SCALES, FACTORS, (0.0, *SHARES)))
    far = errors / scales[:, None]
    usual = stats.t.pdf(far, freedom)[:, None, None, :]
    wide = (stats.t.pdf(far[:, None] / factors[:, None], freedom) / factors[:, None])[:, :, None, :]
    parts = shares[:, None]
    worth = np.log((1 - parts) * usual + parts * wide).sum(axis=-1)  # [scales, factors, shares]
    worth -= len(errors) * np.log(scales)[:, None, None] + np.log(len(errors)) * (shares > 0)
    scale, factor, share = (int(each) for each in np.unravel_index(int(worth.argmax()), worth.shape))
    found = Tails(freedom, SHARES[share - 1], FACTORS[factor]) if share else Tails(freedom)
    return found, SCALES[scale], float(worth.max())
