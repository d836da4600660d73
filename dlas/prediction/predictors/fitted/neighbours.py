"""The nearest measured point."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
from scipy.spatial import cKDTree

from dlas.prediction.predictors.fitted.arrays import read_arrays, write_arrays
from dlas.stack import Fitted, Samples
from dlas.stack.types import Floats


@dataclass(frozen=True)
class Neighbours(Fitted):
    """Measured points; a prediction is the target of the nearest."""

    points: Floats
    """Logarithms of the features, over ``scale``; [rows, columns]."""
    target: Floats
    """[rows]."""
    scale: Floats
    """Standard deviations of the logarithms; 1 where a column is constant; [columns]."""

    @classmethod
    def of(cls, samples: Samples) -> Neighbours:
        """Return the points of ``samples``."""
        logs = np.log1p(samples.features)
        spread = logs.std(axis=0)
        scale = np.where(spread > 0, spread, 1.0)
        return cls(logs / scale, samples.target, scale)

    @classmethod
    def read(cls, folder: Path) -> Neighbours:
        """Return the points that :meth:`save` wrote.

        Raises
        ------
        InputError
        """
        return cls(**read_arrays(folder, {"points": 2, "target": 1, "scale": 1}))

    def predict(self, samples: Samples) -> Floats:
        """Return the target of the nearest point."""
        _, places = cKDTree(self.points).query(np.log1p(samples.features) / self.scale)
        return np.asarray(self.target[places])

    def save(self, folder: Path) -> None:
        """Write the points."""
        write_arrays(folder, {"points": self.points, "target": self.target, "scale": self.scale})
