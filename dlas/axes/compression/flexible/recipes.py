"""How the paths of a flexible network are trained."""

from __future__ import annotations

from dataclasses import dataclass

from torch import nn

from dlas.networks.recipes import Recipe
from dlas.stack import Data


@dataclass(frozen=True)
class JointRecipe:
    """A training of all paths, and one of those that are kept."""

    base: Recipe
    fine_tuned: Recipe


def _by_steps(epochs: int, learning_rate: float, every: int, factor: float, decay: float) -> Recipe:
    return Recipe(
        epochs,
        learning_rate,
        "step",
        batch=32,
        weight_decay=decay,
        step_epochs=every,
        step_factor=factor,
    )


# LeAF, Table 1.  It names no weight decay for ResNet-50: that of torchvision's own training is used.
_RESNET = _by_steps(60, 0.1, 10, 0.1, 1e-4)
PAPER = JointRecipe(_RESNET, _RESNET)
PAPER_DEPTHWISE = JointRecipe(
    _by_steps(80, 4.5e-3, 1, 0.96, 4e-6),
    _by_steps(100, 4.5e-4, 1, 0.97, 4e-6),
)
"""The paper's for MobileNetV2: for networks with depthwise convolutions."""
DIGITS = JointRecipe(
    Recipe(epochs=20, learning_rate=5e-2, batch=32), Recipe(epochs=20, learning_rate=2e-2, batch=32)
)
"""For a data set of a thousand images."""


def recipe_for(name: str, data: Data, module: nn.Module) -> JointRecipe:
    """Return a recipe by name, the data set's own for ``auto``."""
    if name == "digits" or (name == "auto" and data.fine_tuning == "short"):
        return DIGITS
    depthwise = any(
        isinstance(layer, nn.Conv2d) and layer.groups == layer.in_channels > 1 for layer in module.modules()
    )
    return PAPER_DEPTHWISE if depthwise else PAPER
