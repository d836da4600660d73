"""Training of perceptrons by stochastic gradient descent, and the search for its settings.

References
----------
The OFA latency predictor, section 4.2.2: 128-400-400-1, root mean square error, 100 epochs, batches of 32, a
grid of 36 combinations by successive halving.  The paper prints no grid; :data:`GRID` is ours.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
import torch
from torch import nn

from dlas.prediction.predictors.fitted.perceptrons import WIDTH
from dlas.stack.types import Floats

BATCH = 32
FEWER = 3
"""Of the learners that go on, one of so many is kept in each round of halving."""


class Setting(NamedTuple):
    """Settings of stochastic gradient descent."""

    rate: float
    decay: float
    momentum: float
    falling: bool = True
    """Whether the learning rate falls to 0 along half a cosine, in place of being constant."""


class WarmStart(NamedTuple):
    """What training begins with in place of random weights."""

    layers: Sequence[tuple[Floats, Floats]]
    """Weights and biases."""
    frozen: int
    """Layers from the first on that are not trained."""


GRID = tuple(
    sorted(
        (
            Setting(rate, decay, momentum)
            for rate, decay, momentum in itertools.product(
                (0.003, 0.01, 0.03, 0.1), (0.0, 1e-5, 1e-4), (0.0, 0.5, 0.9)
            )
        ),
        # The likeliest first, so that a part of the grid is its best part.
        key=lambda each: (abs(math.log(each.rate / 0.01)), -each.momentum, abs(each.decay - 1e-5)),
    )
)
"""36 combinations of learning rate, weight decay and momentum."""


class Learner:
    """A perceptron in training, which goes on where it was.

    Parameters
    ----------
    features : array [n, columns]
        Standardised.
    outputs : array [n]
        What it is to put out.
    setting : Setting
    epochs : int
        Of the whole training.
    seed : int
        Of its first weights and of the order of the rows.
    start : WarmStart, optional
        By default weights are drawn, and all layers are trained.
    """

    def __init__(
        self,
        features: Floats,
        outputs: Floats,
        setting: Setting,
        epochs: int,
        seed: int,
        start: WarmStart | None = None,
    ) -> None:
        self.features = torch.from_numpy(np.ascontiguousarray(features, dtype=np.float32))
        self.outputs = torch.from_numpy(np.ascontiguousarray(outputs, dtype=np.float32))
        self.order = torch.Generator().manual_seed(seed)
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            self.layers = [
                nn.Linear(features.shape[1], WIDTH),
                nn.Linear(WIDTH, WIDTH),
                nn.Linear(WIDTH, 1),
            ]
        # What is always 0 has no gradient: its weights would stay as they were drawn, and be added elsewhere.
        self.layers[0].weight.data[:, (self.features == 0).all(dim=0)] = 0
        given, frozen = start or ((), 0)
        for layer, (weight, bias) in zip(self.layers, given, strict=False):
            layer.weight.data.copy_(torch.from_numpy(weight))
            layer.bias.data.copy_(torch.from_numpy(bias))
        trained = [value for layer in self.layers[frozen:] for value in layer.parameters()]
        for layer in self.layers[:frozen]:
            layer.requires_grad_(False)
        self.optimiser = torch.optim.SGD(
            trained, setting.rate, momentum=setting.momentum, weight_decay=setting.decay
        )
        self.rate, self.epochs, self.falling = setting.rate, epochs, setting.falling
        self.epoch = 0

    def advance(self, epochs: int) -> None:
        """Train until so many epochs are done."""
        while self.epoch < min(epochs, self.epochs):
            if self.falling:
                share = self.epoch / self.epochs
                for group in self.optimiser.param_groups:
                    group["lr"] = self.rate * (1 + math.cos(math.pi * share)) / 2
            for rows in torch.randperm(len(self.outputs), generator=self.order).split(BATCH):
                self._step(rows)
            self.epoch += 1

    def error(self, features: Floats, outputs: Floats) -> float:
        """Return the root mean square error on other rows; infinite where training has diverged."""
        with torch.no_grad():
            found = self._forward(torch.from_numpy(np.ascontiguousarray(features, dtype=np.float32)))
        error = float(np.sqrt(np.mean((found.numpy().astype(np.float64) - outputs) ** 2)))
        return error if math.isfinite(error) else math.inf

    def arrays(self) -> list[tuple[Floats, Floats]]:
        """Return the weights and biases of each layer."""
        return [
            (layer.weight.detach().numpy().astype(np.float64), layer.bias.detach().numpy().astype(np.float64))
            for layer in self.layers
        ]

    def _forward(self, x: torch.Tensor) -> torch.Tensor:
        for layer in self.layers[:-1]:
            x = torch.relu(layer(x))
        outputs: torch.Tensor = self.layers[-1](x)[:, 0]
        return outputs

    def _step(self, rows: torch.Tensor) -> None:
        self.optimiser.zero_grad()
        difference = self._forward(self.features[rows]) - self.outputs[rows]
        # The derivative of a root is infinite at 0.
        loss = torch.sqrt(torch.mean(difference**2) + 1e-12)
        loss.backward()
        self.optimiser.step()


def halving(
    start: Callable[[Setting], Learner],
    settings: Sequence[Setting],
    features: Floats,
    outputs: Floats,
) -> Setting:
    """Return the setting that wins by successive halving over epochs.

    All settings are trained for a part of the epochs, the best third of them for three times as many, and
    so on: 36, 12, 4.  It is synchronous and draws nothing, so that a seed decides who wins.

    Parameters
    ----------
    start : callable
        Returns a learner that has not begun.
    settings : sequence of Setting
        At least one.
    features, outputs : array
        Rows that learners are not trained on, by which they are compared.
    """
    if len(settings) == 1:
        return settings[0]
    learners = [(start(setting), setting) for setting in settings]
    rounds = 0
    while len(learners) // FEWER ** (rounds + 1) >= FEWER:
        rounds += 1
    for left in range(rounds, -1, -1):
        ranked = []
        for place, (learner, setting) in enumerate(learners):
            learner.advance(math.ceil(learner.epochs / FEWER**left))
            ranked.append((learner.error(features, outputs), place, learner, setting))
        ranked.sort(key=lambda each: each[:2])
        kept = max(1, len(ranked) // FEWER) if left else 1
        learners = [(learner, setting) for _, _, learner, setting in ranked[:kept]]
    return learners[0][1]
