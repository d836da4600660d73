"""Power of kernels, which makes energy of their times."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import numpy as np
from scipy.optimize import nnls

from dlas.prediction.predictors.fitted.boosters import Booster
from dlas.prediction.predictors.fitted.least_squares import relative_rates
from dlas.stack import Kernels
from dlas.stack.types import Floats

PRIOR = (0.02 / 0.3) ** 2
"""Weight of the mean power, in networks: their energies are known to 2 %, powers of kinds differ by 30 %."""


Boosting = Callable[[Floats, Floats], Booster]
"""Fits trees to features [n, columns] and a target [n]."""


@dataclass(frozen=True)
class Power:
    """The power of a device while it runs kernels: a mean of each kind, and trees where kernels told it."""

    watts: Mapping[str, float]
    """By kind; in W."""
    mean: float
    """Of all, for kinds that were never fitted; in W."""
    boosters: Mapping[str, Booster] = field(default_factory=dict)
    """By kind, what predicts the logarithm of a kernel's power over that of its kind. None of a kind whose
    kernels' energies are unknown or few.
    """

    @classmethod
    def fitted(cls, kernels: Kernels, energy: Floats) -> Power:
        """Return the powers of which the energies of networks are made, with the least relative error.

        Meters are too slow for single kernels, so that powers follow from what whole networks used and from
        the time that kernels of each kind took in them.  A kind that takes little time has nearly the mean
        power, because no network tells more.

        Parameters
        ----------
        kernels : Kernels
            With the seconds that were measured.
        energy : array [networks], J
            Positive.

        References
        ----------
        MIRAGE, section 6.2: a network's energy is the sum of its kernels' times and powers multiplied.
        """
        names, kinds = np.unique(kernels.kinds, return_inverse=True)
        seconds = np.zeros((len(energy), len(names)))
        np.add.at(seconds, (kernels.points, kinds), kernels.seconds)
        mean = float(relative_rates(seconds.sum(axis=1, keepdims=True), energy)[0])
        shares = np.vstack([mean * seconds / energy[:, None], np.sqrt(PRIOR) * np.eye(len(names))])
        known = np.concatenate([np.ones(len(energy)), np.full(len(names), np.sqrt(PRIOR))])
        ratios, _ = nnls(shares, known, maxiter=100 * len(names))
        return cls({str(name): mean * float(ratio) for name, ratio in zip(names, ratios, strict=True)}, mean)

    @classmethod
    def boosted(cls, kernels: Kernels, fewest: int, boosting: Boosting) -> Power:
        """Return the powers that the energies of single kernels tell.

        Parameters
        ----------
        kernels : Kernels
            With the seconds and the joules that were measured; those without joules count for nothing.
        fewest : int
            Kernels of a kind that trees are fitted to.
        boosting : callable
            Fits them.

        References
        ----------
        MIRAGE, sections 4.2 and 6.2, and Table 5: power is predicted as time is, by trees over a kernel's
        features and the clocks.
        """
        known = kernels.take((kernels.joules > 0) & (kernels.seconds > 0))
        watts = known.joules / known.seconds
        means, boosters = {}, {}
        for name in np.unique(known.kinds):
            own = known.kinds == name
            means[str(name)] = mean = _geometric_mean(watts[own])
            if own.sum() >= fewest:
                boosters[str(name)] = boosting(known.features[own], np.log(watts[own] / mean))
        return cls(means, _geometric_mean(watts), boosters)

    def of(self, kernels: Kernels) -> Floats:
        """Return the watts of kernels [n], which have the features that were fitted."""
        names, places = np.unique(kernels.kinds, return_inverse=True)
        found = np.array([self.watts.get(str(name), self.mean) for name in names], dtype=np.float64)[places]
        for place, name in enumerate(names):
            if booster := self.boosters.get(str(name)):
                own = places == place
                found[own] *= np.exp(booster.predict(kernels.features[own]))
        return found


def _geometric_mean(watts: Floats) -> float:
    return float(np.exp(np.log(watts).mean()))
