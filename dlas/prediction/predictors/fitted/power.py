"""Power of kernels, which makes energy of their times."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy.optimize import nnls

from dlas.prediction.predictors.fitted.least_squares import relative_rates
from dlas.stack import Kernels
from dlas.stack.types import Floats

PRIOR = (0.02 / 0.3) ** 2
"""Weight of the mean power, in networks: their energies are known to 2 %, powers of kinds differ by 30 %."""


@dataclass(frozen=True)
class Power:
    """The mean power of a device while it runs kernels of each kind."""

    watts: Mapping[str, float]
    """By kind; in W."""
    mean: float
    """Of all, for kinds that were never fitted; in W."""

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

    def of(self, kinds: npt.NDArray[np.str_]) -> Floats:
        """Return the watts of kernels [n], by their kinds [n]."""
        names, places = np.unique(kinds, return_inverse=True)
        return np.array([self.watts.get(str(name), self.mean) for name in names], dtype=np.float64)[places]
