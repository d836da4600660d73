"""A predictor: one rate for a multiply-add, and a constant."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
from dlas.predictors.fitted.rates import Rates

from dlas.stack import Fitted, Predictor, Samples, Workspace


@dataclass(frozen=True)
class PerMacs(Predictor):
    """The sum of all costs times one rate."""

    def families(self, target: str) -> tuple[str, ...]:
        """Return the family of sums."""
        return ("totals",)

    def fit(self, samples: Samples, workspace: Workspace) -> Fitted:
        """Return the median rate of the first column."""
        rates = np.zeros(len(samples.columns))
        rates[0] = float(np.median(samples.target / np.maximum(samples.features[:, 0], 1)))
        return Rates.of(samples, rates, 0.0)

    def load(self, folder: Path) -> Fitted:
        """Return the rate from its file."""
        return Rates.read(folder)
