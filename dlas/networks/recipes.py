"""Training recipes; separate from training, which takes seconds to import."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True)
class Recipe:
    """How to train: stochastic gradient descent on the cross-entropy of mini-batches.

    References
    ----------
    L. Smith and N. Topin, "Super-Convergence: Very Fast Training of Neural
    Networks Using Large Learning Rates", 2017, https://arxiv.org/abs/1708.07120.
    """

    epochs: int
    learning_rate: float = 5e-2
    """The largest learning rate of the schedule."""
    schedule: Literal["one_cycle", "cosine", "constant", "step"] = "one_cycle"
    """Over all steps: from near zero up to ``learning_rate`` and back; from it down to zero; unchanged; or
    times ``step_factor`` after every ``step_epochs`` epochs.
    """
    batch: int = 128
    """Largest number of images in a step; an epoch is cut into steps of even size."""
    momentum: float = 0.9
    cycle_momentum: bool = True
    """With ``one_cycle``, momentum goes from 0.95 down to 0.85 while the learning rate rises, and back, as in
    the reference and in torch; false keeps ``momentum``.
    """
    weight_decay: float = 5e-4
    augment: bool = True
    """Whether training images are augmented as their data set suggests."""
    step_epochs: int = 10
    step_factor: float = 0.1


RECIPES = {
    # DLAS, section 4.1.  It gives an initial learning rate of 5e-2 for a 1cycle schedule, which in torch
    # replaces the optimiser's initial rate by one derived from the peak.  As the start of the cycle it
    # would put the peak at 1.25, which does not train; so 5e-2 is used as the peak.  Its momentum is 0.9.
    "paper": Recipe(epochs=200, cycle_momentum=False),
    # A data set of a thousand images: small batches give enough steps in few epochs.
    "short": Recipe(epochs=15, batch=32),
}

FINE_TUNING = {
    # DLAS, section 4.2: epochs of a whole pruning, shared evenly among its levels.
    "cifar10": Recipe(epochs=210, cycle_momentum=False),
    "imagenet": Recipe(epochs=140, learning_rate=1e-3, schedule="cosine"),
    "short": Recipe(epochs=40, learning_rate=2e-2, batch=32),
}
