"""Tasks: what a program is timed at."""

from __future__ import annotations

from abc import ABC, abstractmethod

import numpy as np
import numpy.typing as npt

from dlas.stack.layer import Layer

INFERENCE = "inference"
TRAINING = "training"
TASKS = (INFERENCE, TRAINING)
"""One inference of a batch, or one training step on it."""


class TrainingStep(ABC):
    """Training steps of a program, each on the same images."""

    note: str | None = None
    """A remark on what is trained, for the row."""

    @abstractmethod
    def step(self) -> float:
        """Train once, and return the loss when the weights are updated.

        A step sets gradients to zero, runs the network in training mode, takes the cross entropy
        of its outputs, runs backward, and updates the weights by SGD with momentum.
        """

    @abstractmethod
    def weights(self) -> dict[str, npt.NDArray[np.float32]]:
        """Return a copy of all trained weights, by name."""

    def layers(self, repeats: int) -> list[Layer] | None:
        """Return the layers in the order they run, with what is known of each; None where none can be timed.

        ``latency_s`` is that of forward and ``backward_s`` of backward, medians over ``repeats``.
        """
        return None
