"""How wrong a predictor is on the groups that were held out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from dlas.learning.fitting import Tried
from dlas.learning.metrics import Scores, relative_errors, score
from dlas.stack import Samples


@dataclass(frozen=True)
class Evaluation:
    """A predictor on the groups that were held out.

    Parameters
    ----------
    name : str
        The predictor's.
    samples : Samples
        Of one setting.
    tried : list of Tried
        One for each fold.
    """

    name: str
    samples: Samples
    tried: list[Tried]

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

    def _score(self, tried: Sequence[Tried]) -> Scores:
        predicted = np.concatenate([each.predicted for each in tried])
        places = np.concatenate([each.fold.tried for each in tried])
        measured = self.samples.target[places]
        if any(each.half_width is None for each in tried):
            return score(predicted, measured)
        spread = np.concatenate([_factor(each) for each in tried])
        groups = [self.samples.groups[place] for place in places]
        return score(predicted, measured, predicted / spread, predicted * spread, groups)


def _factor(tried: Tried) -> npt.NDArray[np.float64]:
    """Return the factor between a prediction and its bounds, for each row of a fold."""
    assert tried.half_width is not None
    return np.full(len(tried.predicted), np.exp(tried.half_width))
