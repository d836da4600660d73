"""How wrong a predictor is on the groups that were held out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from dlas.prediction.learning.fitting import HeldOut
from dlas.prediction.learning.kernel_spread import SHORT_S
from dlas.prediction.learning.metrics import Scores, relative_errors, score
from dlas.stack import Samples
from dlas.stack.types import Floats

SHORT = f"below {1e6 * SHORT_S:.0f} µs"
CLOSE = 0.1
"""Relative error of kernels for which the share within it is told."""


@dataclass(frozen=True)
class KernelScores:
    """How wrong a predictor is on the kernels of one kind."""

    kind: str
    count: int
    """Kernels of this kind that were held out."""
    share: float
    """Their share of the time of all."""
    mape: float
    """Mean absolute error relative to the measured time."""
    within: float
    """Share of them whose relative error is at most 10 %."""


@dataclass(frozen=True)
class Evaluation:
    """A predictor on the groups that were held out."""

    samples: Samples
    """Of one setting."""
    tried: list[HeldOut]
    """One for each fold."""

    def overall(self) -> Scores:
        """Return the scores of all rows that were held out."""
        return self._score(self.tried)

    def by_fold(self) -> dict[str, Scores]:
        """Return the scores of each fold, by its name."""
        return {each.fold.name: self._score([each]) for each in self.tried}

    def held_out(self) -> dict[str, tuple[float, float]]:
        """Return what was predicted and what was measured of each row while it was held out, by its id."""
        return {
            self.samples.ids[place]: (float(guess), float(self.samples.target[place]))
            for each in self.tried
            for place, guess in zip(each.fold.tried, each.predicted, strict=True)
        }

    def worst(self, count: int = 5) -> list[tuple[str, float, float]]:
        """Return the rows with the largest relative errors: id, predicted, measured."""
        places = np.concatenate([each.fold.tried for each in self.tried])
        predicted = np.concatenate([each.predicted for each in self.tried])
        measured = self.samples.target[places]
        order = np.argsort(-relative_errors(predicted, measured))[:count]
        return [(self.samples.ids[places[at]], float(predicted[at]), float(measured[at])) for at in order]

    def by_kernel(self) -> list[KernelScores]:
        """Return the scores of kernels by kind, that with most time first; those that are short come last.

        Empty for predictors that do not read kernels.  Times below :data:`SHORT_S` are mostly the cost of a
        call and of the clock.  (MIRAGE, Table 4)
        """
        found = [each.kernels.timed() for each in self.tried if each.kernels is not None]
        if not found:
            return []
        kinds, predicted, measured = (
            np.concatenate([getattr(each, name) for each in found])
            for name in ("kinds", "predicted", "measured")
        )
        names = np.where(measured < SHORT_S, SHORT, kinds)
        total = measured.sum()
        scores = [
            _kernel_scores(name, predicted[names == name], measured[names == name], total)
            for name in np.unique(names)
        ]
        return sorted(scores, key=lambda each: (each.kind == SHORT, -each.share))

    def _score(self, tried: Sequence[HeldOut]) -> Scores:
        predicted = np.concatenate([each.predicted for each in tried])
        places = np.concatenate([each.fold.tried for each in tried])
        measured = self.samples.target[places]
        widths = [each.half_widths for each in tried if each.half_widths is not None]
        if len(widths) < len(tried):
            return score(predicted, measured)
        spread = np.exp(np.concatenate(widths))
        groups = [self.samples.groups[place] for place in places]
        return score(predicted, measured, predicted / spread, predicted * spread, groups)


def _kernel_scores(kind: str, predicted: Floats, measured: Floats, total: float) -> KernelScores:
    errors = relative_errors(predicted, measured)
    return KernelScores(
        kind=kind,
        count=len(errors),
        share=float(measured.sum() / total),
        mape=float(errors.mean()),
        within=float(np.mean(errors <= CLOSE)),
    )
