"""Forests of regression trees fitted to the logarithm of the target."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

import numpy as np
from pydantic import Field

from dlas.prediction.predictors.fitted.arrays import FILE, read_arrays, write_arrays
from dlas.prediction.predictors.fitted.forests import ARRAYS, Forest
from dlas.stack import Fitted, Predictor, Samples, Workspace
from dlas.stack.types import Floats


@dataclass(frozen=True)
class Trees(Fitted):
    """Trees, whose mean is the logarithm of a prediction."""

    forest: Forest
    share: Floats
    """By how much each column's splits reduce the variance, as a share of the sum; [columns]."""

    @classmethod
    def of(cls, ensemble: Any) -> Trees:
        """Return the trees of an ensemble that scikit-learn fitted."""
        return cls(Forest.of(ensemble), np.asarray(ensemble.feature_importances_))

    @classmethod
    def read(cls, folder: Path, file: str = FILE) -> Trees:
        """Return the trees that :meth:`save` wrote.

        Raises
        ------
        InputError
        """
        arrays = read_arrays(folder, {**dict.fromkeys(ARRAYS, 1), "share": 1}, file)
        return cls(Forest.read(arrays, len(arrays["share"])), arrays["share"])

    def predict(self, samples: Samples) -> Floats:
        """Return the exponential of the trees' mean: the median of a prediction, not its mean."""
        return np.exp(self.forest.predict(samples.features))

    def save(self, folder: Path, file: str = FILE) -> None:
        """Write the trees."""
        write_arrays(folder, {**self.forest.arrays(), "share": self.share}, file)

    def importances(self) -> Sequence[float]:
        """Return by how much each column's splits reduce the variance, as a share of the sum."""
        return tuple(map(float, self.share))


@dataclass(frozen=True)
class TreesPredictor(Predictor):
    """Trees over the costs of training convolutions, fitted to the logarithm of the target."""

    trees: Annotated[int, Field(ge=1, le=10_000)] = 300
    """Number of trees."""
    leaf: Annotated[int, Field(ge=1)] = 1
    """Fewest rows in a leaf."""
    reads: Literal["training", "own"] = "training"
    """Costs of training convolutions; or ``own``, the columns ``feature.<name>`` of an imported table."""

    @abstractmethod
    def ensemble(self, seed: int) -> Any:
        """Return the ensemble of scikit-learn to fit."""

    def families(self, target: str) -> tuple[str, ...]:
        """Return the costs of training convolutions, or the table's own features."""
        return ("feature",) if self.reads == "own" else ("training_cost",)

    def fit(self, samples: Samples, workspace: Workspace) -> Fitted:
        """Return the trees fitted to the logarithm of the target."""
        ensemble = self.ensemble(workspace.seed).fit(samples.features, np.log(samples.target))
        return Trees.of(ensemble)

    def load(self, folder: Path) -> Fitted:
        """Return the trees from their file."""
        return Trees.read(folder)
