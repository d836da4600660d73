"""Linear regression on the costs of training convolutions."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from dlas.prediction.predictors.fitted.rates import Rates
from dlas.stack import Fitted, Predictor, Samples, Workspace


@dataclass(frozen=True)
class Linear(Predictor):
    """Least squares of the absolute error over 56 columns.

    References
    ----------
    perf4sight, which compares it with forests.
    """

    def families(self, target: str) -> tuple[str, ...]:
        """Return the costs of training convolutions."""
        return ("training_cost",)

    def fit(self, samples: Samples, workspace: Workspace) -> Fitted:
        """Return the line with the least squares."""
        from sklearn.linear_model import LinearRegression
        from sklearn.preprocessing import StandardScaler

        scaler = StandardScaler().fit(samples.features)
        line = LinearRegression().fit(scaler.transform(samples.features), samples.target)
        rates = line.coef_ / scaler.scale_
        return Rates.of(samples, rates, float(line.intercept_ - rates @ scaler.mean_))

    def load(self, folder: Path) -> Fitted:
        """Return the line from its file."""
        return Rates.read(folder)
