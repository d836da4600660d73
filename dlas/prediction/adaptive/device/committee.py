"""A committee of predictors: where its members disagree, a measurement teaches most.

References
----------
Seung, Opper, Sompolinsky: Query by committee, COLT 1992.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from dlas.prediction.learning.fitting import fit, quiet
from dlas.prediction.learning.metrics import relative_errors
from dlas.prediction.learning.points import NETWORK, Points
from dlas.prediction.learning.predictions import UNKNOWN_FACTOR
from dlas.prediction.learning.splits import Criterion, folds
from dlas.prediction.predictors.additive import Additive
from dlas.prediction.predictors.fitted.least_squares import relative_rates
from dlas.stack import Fitted, Predictor
from dlas.stack.types import Floats

PARTS = 4
"""Parts of the networks; a member is fitted without each."""


@dataclass(frozen=True)
class Committee:
    """Predictors that were fitted to different networks, or that learn in different ways."""

    members: tuple[tuple[Predictor, Fitted], ...]
    target: str
    """The column that they predict."""
    errors: Floats
    """Relative error of the first predictor on each point, of the member that was fitted without it; [n]."""

    @classmethod
    def of(
        cls, predictor: Predictor, others: Sequence[Predictor], known: Points, target: str, seed: int = 0
    ) -> Committee:
        """Return a committee fitted to points.

        Parameters
        ----------
        predictor : Predictor
            It has a member for each part of the networks, fitted without that part.
        others : sequence of Predictor
            They have one member each, fitted to all points.
        known : Points
            Of one setting, each point once, measured.

        Raises
        ------
        InputError
            If there are fewer points than a predictor takes.
        """
        groups = known.frame[NETWORK].tolist()
        samples = known.samples(predictor, target, groups)
        members: list[tuple[Predictor, Fitted]] = []
        errors = np.empty(len(samples))
        for fold in folds(Criterion(NETWORK, parts=PARTS), groups, seed):
            fitted, tried = fit(predictor, samples.take(fold.fitted), seed, quiet), samples.take(fold.tried)
            errors[fold.tried] = relative_errors(fitted.predict(tried), tried.target)
            members.append((predictor, fitted))
        for other in others:
            members.append((other, fit(other, known.samples(other, target, groups), seed, quiet)))
        return cls(tuple(members), target, errors)

    def disagreement(self, candidates: Points) -> Floats:
        """Return the standard deviation [n] of the logarithms of what the members predict of each point.

        They all guess alike at kernels of kinds that they hardly know, so that what those may take more or
        less counts, too.

        Parameters
        ----------
        candidates : Points
            That were not measured.
        """
        nobody = [""] * len(candidates)
        samples = {
            predictor: candidates.samples(predictor, self.target, nobody)
            for predictor in dict.fromkeys(predictor for predictor, _ in self.members)
        }
        told = (fitted.told(samples[predictor]) for predictor, fitted in self.members)
        said, unknown = zip(*told, strict=True)
        guessed = np.log1p(UNKNOWN_FACTOR * np.mean(unknown, axis=0))
        return np.asarray(np.hypot(np.std(np.log(said), axis=0), guessed))


def seconds_to_measure(known: Points, seconds: Floats, candidates: Points) -> Floats:
    """Return how long measuring each candidate would take [n], by what others took.

    It is a sum of a network's costs as its latency is, with rates of its own.

    Parameters
    ----------
    known : Points
        That were measured.
    seconds : array [known]
        How long that took.
    """
    costs = Additive()
    fitted, asked = (
        points.samples(costs, "latency_s", [""] * len(points)).features for points in (known, candidates)
    )
    return np.asarray(np.maximum(asked @ relative_rates(fitted, seconds), seconds.min()))


def choose(disagreement: Floats, seconds: Floats, count: int) -> npt.NDArray[np.intp]:
    """Return the places of the candidates that a committee disagrees most on for the seconds they cost."""
    return np.argsort(-disagreement / seconds, kind="stable")[:count]
