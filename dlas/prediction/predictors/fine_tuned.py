"""A perceptron of subnetworks that was fitted to another device, its last layer fitted to this one."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Literal

import numpy as np
from pydantic import Field

from dlas.prediction.predictors.fitted.bases import Base, chosen
from dlas.prediction.predictors.fitted.perceptrons import LAYERS, Perceptron, Scale, TargetScale, layers
from dlas.prediction.predictors.subnet_mlp import SubnetMlp
from dlas.stack import Fitted, InputError, Predictor, Samples, Workspace

FROZEN = 2
PENALTIES = tuple(np.logspace(-4, 4, 17))
"""Of the ridge regression, the best of which is chosen by leaving one row out."""


@dataclass(frozen=True)
class FineTuned(Predictor):
    """``subnet_mlp`` of another device: two layers stay as they are, the last is fitted to these rows.

    The last layer is linear, so that it is solved on standardised logarithms: a line over what the base puts
    out, and ridge regression of what that leaves over.
    ``target = "as is"`` is the paper's way: gradient descent on milliseconds from the other device's weights.

    References
    ----------
    The OFA latency predictor, section 4.2.3.
    """

    base: str
    """A folder that ``dlas fit subnet_mlp`` wrote."""
    machine: str = ""
    """Of the base's rows; empty where it was fitted to one setting."""
    target: Scale = "log"
    """As for ``subnet_mlp``."""
    hardware: Literal["none", "log", "as is"] = "none"
    """As the base has it."""
    size: Literal["intervals", "exact"] = "intervals"
    """As the base has it."""
    epochs: Annotated[int, Field(ge=1, le=10_000)] = 100
    """Of gradient descent."""

    def verify(self) -> None:
        """Read the base.

        Raises
        ------
        InputError
        """
        self._base()

    def families(self, target: str) -> tuple[str, ...]:
        """Return what the base reads."""
        return SubnetMlp(hardware=self.hardware, size=self.size).families(target)

    def fit(self, samples: Samples, workspace: Workspace) -> Fitted:
        """Return the base with its last layer fitted to ``samples``.

        Raises
        ------
        InputError
            If the base was fitted to another encoding.
        """
        base = self._base()
        if base.columns != samples.columns:
            raise InputError(
                f"base {self.base!r} reads another encoding: {len(base.columns)} columns, and size = "
                f"{self.size!r} with hardware = {self.hardware!r} has {len(samples.columns)}; give the "
                "options that it was fitted with"
            )
        known = Perceptron.read(base.folder)
        target = TargetScale.of(samples.target, self.target, samples.quantity)
        return (
            self._descended(known, target, samples, workspace)
            if self.target == "as is"
            else _solved(known, target, samples)
        )

    def load(self, folder: Path) -> Fitted:
        """Return the perceptron from its file."""
        return Perceptron.read(folder)

    def _base(self) -> Base:
        base = chosen(self.base, self.machine)
        if base.part not in ("subnet_mlp", "fine_tuned"):
            raise InputError(f"base {self.base!r} is a {base.part!r}; expected a fitted 'subnet_mlp'")
        return base

    def _descended(
        self, known: Perceptron, target: TargetScale, samples: Samples, workspace: Workspace
    ) -> Perceptron:
        """Return the base after gradient descent on its last layer."""
        from dlas.prediction.predictors.fitted.learners import GRID, Learner, WarmStart

        start = WarmStart(list(zip(known.weights, known.biases, strict=True)), FROZEN)
        read = known.standardised(samples.features)
        learner = Learner(
            read,
            target.forward(samples.target),
            GRID[0]._replace(falling=False),
            self.epochs,
            workspace.seed,
            start,
        )
        learner.advance(self.epochs)
        weights, biases = layers(learner.arrays())
        return replace(known, weights=weights, biases=biases, target=target)


def _solved(known: Perceptron, target: TargetScale, samples: Samples) -> Perceptron:
    """Return the base with its outputs on a line, from which its last layer departs as far as rows tell."""
    from sklearn.linear_model import LinearRegression, RidgeCV

    hidden, outputs = known.hidden(samples.features), target.forward(samples.target)
    told = hidden @ known.weights[-1].T
    line = LinearRegression().fit(told, outputs)
    # One scale for all neurons: those that hardly ever put out anything are not to be blown up.
    scale = float(hidden.std(axis=0).mean()) or 1.0
    rest = RidgeCV(PENALTIES).fit(hidden / scale, outputs - line.predict(told))
    assert len(known.weights) == LAYERS
    last = line.coef_[0] * known.weights[-1] + rest.coef_ / scale
    bias = np.array([float(line.intercept_ + rest.intercept_)])
    return replace(
        known, weights=(*known.weights[:-1], last), biases=(*known.biases[:-1], bias), target=target
    )
