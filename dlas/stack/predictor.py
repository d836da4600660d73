"""Predictors: fitted to measured rows, they tell what points that were never run would measure."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from dlas.stack.model import Workspace
from dlas.stack.part import Part


@dataclass(frozen=True)
class Samples:
    """Points as a table: what is known of them, and what was measured.

    Parameters
    ----------
    ids : tuple of str, length n
        The points.
    columns : tuple of str
        Names of the features, ``family.name``.
    features : array [n, columns]
    target : array [n]
        What was measured, in SI units; NaN for points that were not run.
    groups : tuple of str, length n
        Rows of one group are alike and err together: a network, a pruning level.
    """

    ids: tuple[str, ...]
    columns: tuple[str, ...]
    features: npt.NDArray[np.float64]
    target: npt.NDArray[np.float64]
    groups: tuple[str, ...]

    def __len__(self) -> int:
        return len(self.ids)

    def take(self, places: Sequence[int] | npt.NDArray[np.int_]) -> Samples:
        """Return some of the points, by their places."""
        chosen = np.asarray(places, dtype=np.intp)
        return replace(
            self,
            ids=tuple(self.ids[place] for place in chosen),
            features=self.features[chosen],
            target=self.target[chosen],
            groups=tuple(self.groups[place] for place in chosen),
        )


class Fitted(ABC):
    """A predictor that was fitted to rows."""

    @abstractmethod
    def predict(self, samples: Samples) -> npt.NDArray[np.float64]:
        """Return the predictions [n], positive and in the unit of the target."""

    @abstractmethod
    def save(self, folder: Path) -> None:
        """Write what :meth:`Predictor.load` needs into ``folder``; no pickles."""

    def importances(self) -> Sequence[float] | None:
        """Return each column's share in the predictions, in the order of the samples' columns.

        None where the predictor cannot tell.
        """
        return None


class Predictor(Part, ABC):
    """A method of prediction; its fields are its options."""

    fewest: ClassVar[int] = 20
    """Rows that fitting takes at least."""

    @abstractmethod
    def families(self, target: str) -> tuple[str, ...]:
        """Return the families of features that it reads to predict ``target``."""

    @abstractmethod
    def fit(self, samples: Samples, workspace: Workspace) -> Fitted:
        """Return the predictor fitted to ``samples``, every target of which is known and positive."""

    @abstractmethod
    def load(self, folder: Path) -> Fitted:
        """Return what :meth:`Fitted.save` wrote into ``folder``, which may come from elsewhere.

        Raises
        ------
        InputError
            If a file is damaged.
        """
