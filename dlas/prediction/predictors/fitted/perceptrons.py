"""Perceptrons of two hidden layers, trained with torch and evaluated with numpy."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import numpy as np
import numpy.typing as npt

from dlas.errors import InputError
from dlas.prediction.predictors.fitted.arrays import read_arrays, write_arrays
from dlas.stack import Fitted, Samples
from dlas.stack.types import Floats

Single = npt.NDArray[np.float32]
Scale = Literal["log", "as is"]
LAYERS = 3
WIDTH = 400
"""Neurons of a hidden layer."""
ARRAYS = {
    **{f"weight{place}": 2 for place in range(LAYERS)},
    **{f"bias{place}": 1 for place in range(LAYERS)},
    "mean": 1,
    "deviation": 1,
    "target": 1,
}
BEYOND = np.log(10)
"""A prediction lies at most ten times beyond the range that was fitted."""
TOGETHER = 512
"""Rows that are predicted at a time, so that what layers put out stays in the processor's caches."""
MILLI = 1e3
"""Seconds as they are fitted where nothing is scaled: in milliseconds, as the paper has them."""


@dataclass(frozen=True)
class TargetScale:
    """How targets become what a perceptron puts out."""

    logs: bool
    """Whether it is the logarithm."""
    mean: float
    """Of what was fitted, which then has mean 0 and deviation 1."""
    deviation: float
    """Of what was fitted, which then has mean 0 and deviation 1."""
    low: float
    """Least and largest value that is predicted, in the target's unit."""
    high: float
    """Least and largest value that is predicted, in the target's unit."""

    @classmethod
    def of(cls, target: Floats, scale: Scale, quantity: str) -> TargetScale:
        """Return the scale of targets, each positive, of a quantity such as ``latency_s``."""
        low, high = float(target.min() / np.exp(BEYOND)), float(target.max() * np.exp(BEYOND))
        if scale == "as is":
            return cls(False, 0.0, 1 / MILLI if quantity.endswith("_s") else 1.0, low, high)
        logs = np.log(target)
        return cls(True, float(logs.mean()), float(logs.std()) or 1.0, low, high)

    def forward(self, target: Floats) -> Floats:
        """Return what a perceptron is to put out."""
        return np.asarray(((np.log(target) if self.logs else target) - self.mean) / self.deviation)

    def back(self, outputs: Floats) -> Floats:
        """Return predictions of what a perceptron puts out."""
        values = outputs * self.deviation + self.mean
        bounds = (np.log(self.low), np.log(self.high)) if self.logs else (self.low, self.high)
        clipped = np.clip(values, *bounds)
        return np.asarray(np.exp(clipped) if self.logs else clipped)


@dataclass(frozen=True)
class Perceptron(Fitted):
    """A perceptron, and the scales of what it reads and puts out."""

    weights: tuple[Floats, ...]
    """Tuple of [written, read]."""
    biases: tuple[Floats, ...]
    """Tuple of [written]."""
    mean: Floats
    """Of the features, which it reads standardised; [columns]."""
    deviation: Floats
    """Of the features, which it reads standardised; [columns]."""
    target: TargetScale

    @classmethod
    def read(cls, folder: Path) -> Perceptron:
        """Return what :meth:`save` wrote, which may come from elsewhere.

        Raises
        ------
        InputError
            If a file is missing, damaged, or of another perceptron.
        """
        arrays = read_arrays(folder, ARRAYS)
        weights = tuple(arrays[f"weight{place}"].astype(np.float64) for place in range(LAYERS))
        biases = tuple(arrays[f"bias{place}"].astype(np.float64) for place in range(LAYERS))
        columns = weights[0].shape[1]
        shapes = [(WIDTH, columns), (WIDTH, WIDTH), (1, WIDTH)]
        told = [weight.shape for weight in weights] == shapes
        told &= [bias.shape for bias in biases] == [shape[:1] for shape in shapes]
        told &= arrays["mean"].shape == arrays["deviation"].shape == (columns,)
        if not told or arrays["target"].shape != (5,):
            raise InputError(f"{folder}: arrays of other shapes than {columns}-{WIDTH}-{WIDTH}-1")
        logs, mean, deviation, low, high = map(float, arrays["target"])
        if not (arrays["deviation"] > 0).all() or not 0 < low <= high or not deviation > 0:
            raise InputError(f"{folder}: deviations and bounds must be positive")
        return cls(
            weights,
            biases,
            arrays["mean"],
            arrays["deviation"],
            TargetScale(bool(logs), mean, deviation, low, high),
        )

    def standardised(self, features: Floats) -> Floats:
        """Return features as the first layer reads them."""
        return np.asarray((features - self.mean) / self.deviation)

    @functools.cached_property
    def _hidden_layers(self) -> list[tuple[Single, Single]]:
        """Weights [read, written] and biases of the hidden layers, in the precision they were trained in."""
        pairs = zip(self.weights[:-1], self.biases[:-1], strict=True)
        return [(weight.T.astype(np.float32), bias.astype(np.float32)) for weight, bias in pairs]

    def hidden(self, features: Floats) -> Floats:
        """Return what the second hidden layer puts out, [n, neurons]."""
        values = self.standardised(features).astype(np.float32)
        for weight, bias in self._hidden_layers:
            values = values @ weight
            values += bias
            np.maximum(values, 0, out=values)
        return values.astype(np.float64)

    def predict(self, samples: Samples) -> Floats:
        """Return predictions, at most ten times beyond what was fitted."""
        outputs = np.empty(len(samples))
        for start in range(0, len(samples), TOGETHER):
            rows = slice(start, start + TOGETHER)
            outputs[rows] = self.hidden(samples.features[rows]) @ self.weights[-1][0]
        return self.target.back(outputs + self.biases[-1][0])

    def save(self, folder: Path) -> None:
        """Write the arrays."""
        target = self.target
        arrays = {f"weight{place}": each for place, each in enumerate(self.weights)}
        arrays |= {f"bias{place}": each for place, each in enumerate(self.biases)}
        scales = [float(target.logs), target.mean, target.deviation, target.low, target.high]
        arrays |= {"mean": self.mean, "deviation": self.deviation, "target": np.array(scales)}
        write_arrays(folder, arrays)


def scales(features: Floats) -> tuple[Floats, Floats]:
    """Return the mean and the deviation of columns, the latter 1 where a column is constant."""
    deviation = features.std(axis=0)
    return features.mean(axis=0), np.where(deviation > 0, deviation, 1.0)


def layers(arrays: Sequence[tuple[Floats, Floats]]) -> tuple[tuple[Floats, ...], tuple[Floats, ...]]:
    """Return the weights of layers, and their biases."""
    weights, biases = zip(*arrays, strict=True)
    return tuple(weights), tuple(biases)
