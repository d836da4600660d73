"""A line over the number of multiply-adds: what people use who have no predictor."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from dlas.prediction.predictors.fitted.least_squares import relative_rates
from dlas.prediction.predictors.fitted.rates import Rates
from dlas.stack import Fitted, Predictor, Samples, Workspace


@dataclass(frozen=True)
class Flops(Predictor):
    """Predict ``a + b * multiply-adds`` of the whole batch."""

    def families(self, target: str) -> tuple[str, ...]:
        """Return the totals of a network."""
        return ("totals",)

    def fit(self, samples: Samples, workspace: Workspace) -> Fitted:
        """Return the line with the least relative error."""
        macs = samples.features[:, samples.columns.index("totals.macs")]
        constant, slope = relative_rates(np.column_stack([np.ones(len(macs)), macs]), samples.target)
        rates = np.where(np.array(samples.columns) == "totals.macs", slope, 0.0)
        return Rates.of(samples, rates, constant)

    def load(self, folder: Path) -> Fitted:
        """Return the line from its file."""
        return Rates.read(folder)
