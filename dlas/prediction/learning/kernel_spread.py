"""How far the prediction of a network may be off, from how far those of its kernels are.

Different kernels err apart, and their errors cancel in a sum; equal ones err together.  So the time of a
network that many kernels share is surer than that of one with few, and a width for all networks, taken from
small ones, is too wide for large ones.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pydantic
from scipy import stats

from dlas.bench.store.records import Strict
from dlas.stack import Kernels
from dlas.stack.types import Floats

SHORT_S = 20e-6
"""Kernels that take less are mostly the cost of a call and of the clock, and counted apart."""
LARGEST_ERROR = 1.5
"""Logarithms of errors are cut here, so that one kernel does not speak for its kind."""
WEIGHT_OF_ALL = 10
"""Kernels that a kind of few counts as many of all kinds for."""
STRANGE = 2.0
"""Deviations of kinds that no kernel was held out of, over that of all."""
FREEDOM = 4
"""Degrees of freedom of the t distribution that errors of networks are fitted with."""
COMMON = np.linspace(0.01, 0.4, 40)
"""Deviations that are tried for what a network's kernels have in common."""
OWN = (0.0, 0.1, 0.25, 0.5, 0.75, 1.0, 1.5, 2.0)
"""Weights that are tried for the variance of its kernels."""

Deviation = pydantic.NonNegativeFloat
Places = npt.NDArray[np.intp]


@dataclass(frozen=True)
class PredictedKernels:
    """Kernels, and what a predictor says of each that saw none of their networks."""

    kernels: Kernels
    predicted: Floats
    """[n], s."""
    networks: int
    """How many there are, also without kernels."""

    def timed(self) -> PredictedKernels:
        """Return those that were measured."""
        known = self.kernels.seconds > 0
        return PredictedKernels(self.kernels.take(known), self.predicted[known], self.networks)

    @property
    def kinds(self) -> npt.NDArray[np.str_]:
        """What each computes; [n] of str."""
        return self.kernels.kinds

    @property
    def measured(self) -> Floats:
        """[n], s; NaN where it was not."""
        return self.kernels.seconds


class KernelSpread(Strict):
    """Standard deviations of logarithms of errors of kernels, and what makes scales of networks of them.

    The scale of the network in the middle of those that were held out is 1.
    """

    kinds: dict[str, tuple[Deviation, Deviation]]
    """Of kernels predicted below and above :data:`SHORT_S`, by kind."""
    mean: tuple[Deviation, Deviation]
    """Of all kinds."""
    common: Deviation
    """Scale of what all kernels of a network have in common."""
    own: pydantic.NonNegativeFloat
    """Weight of the variance that is its kernels' own."""

    @classmethod
    def fitted(cls, held_out: Sequence[PredictedKernels], errors: Floats) -> KernelSpread:
        """Return the spread of networks that were held out.

        Parameters
        ----------
        held_out : sequence of PredictedKernels
            Some networks each.
        errors : array [networks]
            Logarithms of measured over predicted times, in the order of these.
        """
        kinds, mean = _deviations([each.timed() for each in held_out])
        alone = cls(kinds=kinds, mean=mean, common=0.0, own=1.0)
        variances = np.concatenate([alone._variances(each) for each in held_out])
        common, own = _likeliest(errors, variances)
        middle = float(np.median(np.sqrt(common**2 + own * variances)))
        return cls(kinds=kinds, mean=mean, common=common / middle, own=own / middle**2)

    def scales(self, kernels: PredictedKernels) -> Floats:
        """Return how wide intervals are [networks], 1 for the network in the middle."""
        return np.asarray(np.sqrt(self.common**2 + self.own * self._variances(kernels)))

    def _variances(self, given: PredictedKernels) -> Floats:
        """Return the variance [networks] of the logarithm of each sum, were kernels all that errs."""
        kernels, predicted = given.kernels, given.predicted
        strange = tuple(STRANGE * each for each in self.mean)
        below, above = (
            np.array([self.kinds.get(kind, strange) for kind in kernels.kinds.tolist()]).reshape(-1, 2).T
        )
        alike, points = _alike(kernels)
        apart = np.bincount(alike, predicted * np.where(predicted < SHORT_S, below, above))
        whole = np.bincount(kernels.points, predicted, given.networks)
        squares = np.bincount(points, apart**2, given.networks)
        return np.asarray(squares / np.maximum(whole, 1e-150) ** 2, dtype=np.float64)


def _deviations(
    timed: Sequence[PredictedKernels],
) -> tuple[dict[str, tuple[float, float]], tuple[float, float]]:
    """Return the deviations of kernels by kind and of all, below and above :data:`SHORT_S`."""
    kinds, predicted, measured = (
        np.concatenate([getattr(each, name) for each in timed]) for name in ("kinds", "predicted", "measured")
    )
    squares = np.minimum(np.abs(np.log(measured / predicted)), LARGEST_ERROR) ** 2
    of_all, of_kinds = [], []
    names, places = np.unique(kinds, return_inverse=True)
    for chosen in (predicted < SHORT_S, predicted >= SHORT_S):
        mean = float(squares[chosen if chosen.any() else ...].mean())
        count, total = (np.bincount(places[chosen], each, len(names)) for each in (None, squares[chosen]))
        of_all.append(mean**0.5)
        of_kinds.append(np.sqrt((total + WEIGHT_OF_ALL * mean) / (count + WEIGHT_OF_ALL)))
    below, above = of_kinds
    return dict(zip(names.tolist(), zip(below.tolist(), above.tolist(), strict=True), strict=True)), (
        of_all[0],
        of_all[1],
    )


def _alike(kernels: Kernels) -> tuple[Places, Places]:
    """Return a number [n] of each kernel, one for equal ones of a network; and the network of each number."""
    _, kinds = np.unique(kernels.kinds, return_inverse=True)
    table = np.column_stack([kernels.points, kinds, kernels.features])
    numbers: dict[bytes, int] = {}
    alike = np.array([numbers.setdefault(row.tobytes(), len(numbers)) for row in table], dtype=np.intp)
    points = np.empty(len(numbers), dtype=np.intp)
    points[alike] = kernels.points
    return alike, points


def _likeliest(errors: Floats, variances: Floats) -> tuple[float, float]:
    """Return what networks have in common and the weight of what is their kernels' own."""

    def likelihood(tried: tuple[float, float]) -> float:
        common, own = tried
        deviations = np.sqrt(common**2 + own * variances)
        return float((stats.t.logpdf(errors / deviations, FREEDOM) - np.log(deviations)).sum())

    return max(itertools.product(COMMON.tolist(), OWN), key=likelihood)
