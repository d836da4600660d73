"""A random forest over the costs of training convolutions."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from dlas.prediction.predictors.fitted.trees import TreesPredictor


@dataclass(frozen=True)
class RandomForest(TreesPredictor):
    """A random forest over 56 columns, fitted to the logarithm of the target.

    References
    ----------
    perf4sight, appendix B.2.
    """

    def ensemble(self, seed: int) -> Any:
        """Return scikit-learn's RandomForestRegressor."""
        from sklearn.ensemble import RandomForestRegressor

        return RandomForestRegressor(self.trees, min_samples_leaf=self.leaf, random_state=seed)
