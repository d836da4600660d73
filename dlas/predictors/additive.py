"""A sum of analytic costs, each with a non-negative rate: a few rows are enough, and it extrapolates."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from dlas.predictors.fitted.least_squares import relative_rates
from dlas.predictors.fitted.rates import Rates
from dlas.stack import Fitted, Predictor, Samples, Workspace


@dataclass(frozen=True)
class Additive(Predictor):
    """Sum multiply-adds, values, weights and operators, or what memory holds, with the least relative error.

    Costs of a device are never negative, so neither are their rates: with few rows
    this keeps costs that occur together from cancelling each other.
    """

    def families(self, target: str) -> tuple[str, ...]:
        """Return the costs that make up the target."""
        return ("memory_costs",) if target.endswith("_bytes") else ("costs",)

    def fit(self, samples: Samples, workspace: Workspace) -> Fitted:
        """Return the rates with the least relative error."""
        return Rates.of(samples, relative_rates(samples.features, samples.target), 0.0)

    def load(self, folder: Path) -> Fitted:
        """Return the rates from their file."""
        return Rates.read(folder)
