"""A sum of features, each with its rate."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from dlas.prediction.predictors.fitted.arrays import read_arrays, write_arrays
from dlas.stack import Fitted, Samples
from dlas.stack.types import Floats


@dataclass(frozen=True)
class Rates(Fitted):
    """A constant and a rate for each column."""

    rates: Floats
    """Of the target's unit a unit of the feature; [columns]."""
    constant: float
    floor: float
    """The least that is predicted; positive."""
    share: Floats
    """Mean part of each column in the predictions of the rows it was fitted to; [columns]."""

    @classmethod
    def of(cls, samples: Samples, rates: Floats, constant: float) -> Rates:
        """Return the rates that were fitted to ``samples``; they predict at least a tenth of the least."""
        parts = np.abs(samples.features * rates)
        share = (parts / np.maximum(parts.sum(axis=1, keepdims=True) + abs(constant), 1e-300)).mean(axis=0)
        return cls(rates, constant, float(samples.target.min()) / 10, share)

    @classmethod
    def read(cls, folder: Path) -> Rates:
        """Return the rates that :meth:`save` wrote.

        Raises
        ------
        InputError
        """
        arrays = read_arrays(folder, {"rates": 1, "constant": 1, "floor": 1, "share": 1})
        return cls(arrays["rates"], float(arrays["constant"][0]), float(arrays["floor"][0]), arrays["share"])

    def predict(self, samples: Samples) -> Floats:
        """Return the sums, but nothing below the floor."""
        return np.maximum(samples.features @ self.rates + self.constant, self.floor)

    def save(self, folder: Path) -> None:
        """Write the rates."""
        constant, floor = np.array([self.constant]), np.array([self.floor])
        write_arrays(folder, {"rates": self.rates, "constant": constant, "floor": floor, "share": self.share})

    def importances(self) -> Sequence[float]:
        """Return each column's mean part in the predictions."""
        return tuple(map(float, self.share))
