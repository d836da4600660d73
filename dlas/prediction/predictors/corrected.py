"""A sum of analytic costs, corrected by trees where it errs in the same way."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import numpy as np
from pydantic import Field

from dlas.prediction.predictors.additive import Additive
from dlas.prediction.predictors.extra_trees import ExtraTrees
from dlas.prediction.predictors.fitted.least_squares import relative_rates
from dlas.prediction.predictors.fitted.rates import Rates
from dlas.prediction.predictors.fitted.trees import Trees
from dlas.stack import Fitted, Predictor, Samples, Workspace
from dlas.stack.types import Floats

SUMMED = ("costs.", "memory_costs.")
"""Beginnings of the names of the columns that are summed; trees read all."""
TREES = "trees.safetensors"
"""File of the trees, beside that of the rates."""


@dataclass(frozen=True)
class CorrectedSum(Fitted):
    """A sum of costs, and trees that predict by what factor it is wrong."""

    total: Rates
    factor: Trees

    def predict(self, samples: Samples) -> Floats:
        """Return the sums times their factors, which lie among those of the rows that were fitted."""
        return np.asarray(self.total.predict(samples) * self.factor.predict(samples))

    def save(self, folder: Path) -> None:
        """Write rates and trees, a file each."""
        self.total.save(folder)
        self.factor.save(folder, TREES)


@dataclass(frozen=True)
class Corrected(Predictor):
    """Sum analytic costs as ``additive`` does, and multiply by a factor from extremely randomised trees.

    Where rows are like those that were fitted, the trees correct what a sum cannot tell, such as kernels
    that change with the number of channels; elsewhere the sum extrapolates, and the factor is that of the
    most similar rows.
    """

    trees: Annotated[int, Field(ge=1, le=10_000)] = 300
    """Number of trees."""
    leaf: Annotated[int, Field(ge=1)] = 3
    """Fewest rows in a leaf."""

    def families(self, target: str) -> tuple[str, ...]:
        """Return the costs that ``additive`` sums and, of time, those by class of operator."""
        summed = Additive().families(target)
        return summed if target.endswith("_bytes") else (*summed, "costs_by_class")

    def fit(self, samples: Samples, workspace: Workspace) -> Fitted:
        """Return the rates, and the trees fitted to the logarithm of what was measured over the sum."""
        summed = [column.startswith(SUMMED) for column in samples.columns]
        rates = np.zeros(len(samples.columns))
        rates[summed] = relative_rates(samples.features[:, summed], samples.target)
        total = Rates.of(samples, rates, 0.0)
        ratio = samples.target / total.predict(samples)
        ensemble = ExtraTrees(self.trees, self.leaf).ensemble(workspace.seed)
        return CorrectedSum(total, Trees.of(ensemble.fit(samples.features, np.log(ratio))))

    def load(self, folder: Path) -> Fitted:
        """Return rates and trees from their files."""
        return CorrectedSum(Rates.read(folder), Trees.read(folder, TREES))
