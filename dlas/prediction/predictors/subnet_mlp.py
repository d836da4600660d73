"""A perceptron over the encoding of subnetworks."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import numpy as np
import numpy.typing as npt
from pydantic import Field

from dlas.prediction.predictors.fitted.perceptrons import Perceptron, Scale, TargetScale, layers, scales
from dlas.stack import Fitted, Predictor, Samples, Workspace
from dlas.stack.types import Floats

if TYPE_CHECKING:
    from dlas.prediction.predictors.fitted.learners import Learner

OF_HARDWARE = {"none": (), "log": ("subnet_device_logs",), "as is": ("subnet_device",)}
VALIDATED = 0.15 / 0.85
"""Share of the rows by which settings are compared: of all, 15 % where 15 % are held out."""


@dataclass(frozen=True)
class Training:
    """A perceptron in training, and the scales of what it reads and puts out."""

    learner: Learner
    mean: Floats
    """[columns]."""
    deviation: Floats
    """[columns]."""
    target: TargetScale

    def fitted(self) -> Perceptron:
        """Return the perceptron as it is after the epochs that are done."""
        return Perceptron(*layers(self.learner.arrays()), self.mean, self.deviation, self.target)


@dataclass(frozen=True)
class SubnetMlp(Predictor):
    """A perceptron 128-400-400-1 over kernel sizes, expansion ratios and image size of subnetworks.

    The best of 36 settings is found by successive halving on a part of the rows, and trained on all.  It
    learns logarithms, standardised.  ``target = "as is"`` and ``hardware = "as is"`` are the paper's way:
    milliseconds, and numbers of thousands beside zeros and ones.

    References
    ----------
    The OFA latency predictor, sections 4.2 and 4.3.
    """

    target: Scale = "log"
    """What is learned: the standardised logarithm, or the value itself; times in milliseconds."""
    hardware: Literal["none", "log", "as is"] = "none"
    """Whether a GPU's cores, memory and bandwidth are read, too: their standardised logarithms, or
    themselves.
    """
    size: Literal["intervals", "exact"] = "intervals"
    """Whether the number of pixels is read beside the eight intervals of sizes."""
    epochs: Annotated[int, Field(ge=1, le=10_000)] = 100
    settings: Annotated[int, Field(ge=1, le=36)] = 36
    """How many of the 36 combinations of learning rate, weight decay and momentum are tried."""

    def families(self, target: str) -> tuple[str, ...]:
        """Return the encoding of subnetworks and, where they are read, sizes and devices."""
        return (
            "subnet",
            *(("subnet_size",) if self.size == "exact" else ()),
            *OF_HARDWARE[self.hardware],
        )

    def fit(self, samples: Samples, workspace: Workspace) -> Fitted:
        """Return the perceptron with the settings that err least on a part of the rows."""
        training = self.training(samples, workspace.seed)
        training.learner.advance(self.epochs)
        return training.fitted()

    def training(self, samples: Samples, seed: int) -> Training:
        """Return the perceptron of the best settings on all rows, before its first epoch."""
        from dlas.prediction.predictors.fitted.learners import GRID, Learner, Setting, halving

        target = TargetScale.of(samples.target, self.target, samples.quantity)
        mean, deviation = self.scales(samples)
        read, outputs = (samples.features - mean) / deviation, target.forward(samples.target)

        def learner(rows: npt.NDArray[np.bool_], setting: Setting) -> Learner:
            return Learner(read[rows], outputs[rows], setting, self.epochs, seed)

        away = _validated(samples, seed)
        tried = [each._replace(falling=self.target == "log") for each in GRID[: self.settings]]
        best = halving(lambda each: learner(~away, each), tried, read[away], outputs[away])
        return Training(learner(np.ones(len(samples), dtype=bool), best), mean, deviation, target)

    def load(self, folder: Path) -> Fitted:
        """Return the perceptron from its file."""
        return Perceptron.read(folder)

    def scales(self, samples: Samples) -> tuple[Floats, Floats]:
        """Return the mean and the deviation of columns, 0 and 1 where they are read as they are."""
        if "as is" in (self.target, self.hardware):
            return np.zeros(len(samples.columns)), np.ones(len(samples.columns))
        return scales(samples.features)


def _validated(samples: Samples, seed: int) -> npt.NDArray[np.bool_]:
    """Return the rows by which settings are compared: whole groups, at least one and not all."""
    groups = np.asarray(samples.groups)
    if len(set(samples.groups)) < 2:
        groups = np.arange(len(samples)).astype(str)
    names = np.unique(groups)
    count = min(max(1, round(VALIDATED * len(names))), len(names) - 1)
    return np.isin(groups, np.random.default_rng(seed).permutation(names)[:count])
