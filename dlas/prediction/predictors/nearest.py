"""The measured point that is most alike."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from dlas.prediction.predictors.fitted.neighbours import Neighbours
from dlas.stack import Fitted, Predictor, Samples, Workspace


@dataclass(frozen=True)
class Nearest(Predictor):
    """Predict what the point with the most similar totals measured."""

    def families(self, target: str) -> tuple[str, ...]:
        """Return the totals of a network."""
        return ("totals",)

    def fit(self, samples: Samples, workspace: Workspace) -> Fitted:
        """Keep the points."""
        return Neighbours.of(samples)

    def load(self, folder: Path) -> Fitted:
        """Return the points from their file."""
        return Neighbours.read(folder)
