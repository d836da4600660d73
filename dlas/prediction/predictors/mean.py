"""The mean of what was measured: what any predictor has to beat."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from dlas.prediction.predictors.fitted.rates import Rates
from dlas.stack import Fitted, Predictor, Samples, Workspace


@dataclass(frozen=True)
class Mean(Predictor):
    """Predict the geometric mean, whatever the point."""

    def families(self, target: str) -> tuple[str, ...]:
        """Return none."""
        return ()

    def fit(self, samples: Samples, workspace: Workspace) -> Fitted:
        """Return the mean of the targets."""
        return Rates.of(samples, np.zeros(len(samples.columns)), float(np.exp(np.log(samples.target).mean())))

    def load(self, folder: Path) -> Fitted:
        """Return the mean from its file."""
        return Rates.read(folder)
