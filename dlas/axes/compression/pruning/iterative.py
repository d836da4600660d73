"""Iterative pruning, the base of all pruning techniques: prune a little, fine-tune, prune more.

Every level of a technique's grid is a network of its own, made from the level
below, so that a curve costs one training and a killed sweep loses at most an
epoch of one level.
"""

from __future__ import annotations

import math
import time
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Any, ClassVar, Literal

import numpy as np
from pydantic import Field

from dlas.axes.compression.pruning.elbow import knee, last_within
from dlas.axes.compression.pruning.importance import Criterion
from dlas.axes.compression.pruning.masks import Scope
from dlas.errors import InputError, Unsupported
from dlas.networks.recipes import FINE_TUNING, Recipe
from dlas.networks.scoring import score
from dlas.networks.torch.network import TorchNetwork, conv_weights
from dlas.networks.zeros import keep_zeros
from dlas.stack import Compression, Data, Network, SavedNetwork, Workspace

Level = Annotated[float, Field(gt=0, lt=1)] | Literal["elbow"]
ELBOW = "elbow"
CHOOSING = {"elbow": "tolerance", "tolerance": 0.01}
"""Options that only decide where the elbow is, at their defaults: they do not affect the networks."""


@dataclass(frozen=True)
class IterativePruning(Compression):
    """Prunes to each level of a grid in turn, with fine-tuning after each.

    Without fine-tuning, because the images have no labels or the recipe is
    "none", it prunes to its level in one step.
    """

    GRID: ClassVar[tuple[float, ...]]
    """Levels on the way to a higher one, rising."""

    level: Level
    """Share to prune, between 0 and 1; or the elbow of the grid's levels, see ``elbow``, chosen on validation
    data.
    """
    scope: Scope = "global"
    """Rank importance over all layers together, or within each layer."""
    criterion: Criterion = "l1"
    """How the importance of weights, channels or blocks is estimated."""
    recipe: Literal["auto", "cifar10", "imagenet", "short", "none"] = "auto"
    """How to fine-tune; "auto" takes the data set's recipe, and does not fine-tune if the network is
    untrained or images have no labels.
    """
    epochs: Annotated[int, Field(ge=1, le=100_000)] | None = None
    """Of fine-tuning, shared evenly among the grid's levels, instead of the recipe's own number."""
    learning_rate: Annotated[float, Field(gt=0)] | None = None
    """Instead of the recipe's own."""
    elbow: Literal["tolerance", "knee"] = "tolerance"
    """Which level is the elbow: the highest at most ``tolerance`` below the dense network's accuracy, or the
    knee of the curve.
    """
    tolerance: Annotated[float, Field(ge=0, lt=1)] = 0.01  # as in CHOOSING
    """A fraction of validation images; 0.01 is one point."""

    @abstractmethod
    def prune(self, network: TorchNetwork, level: float, data: Data, workspace: Workspace) -> None:
        """Prune the network in place to a level; fine-tuning keeps its zeros."""

    @abstractmethod
    def reached(self, network: TorchNetwork) -> dict[str, Any]:
        """Return ``units``, ``ratio`` and ``layers`` as :class:`dlas.stack.Facts` defines them."""

    def verify(self) -> None:
        """Refuse options of fine-tuning if there is none.

        Raises
        ------
        InputError
        """
        options = [name for name in ("epochs", "learning_rate") if getattr(self, name) is not None]
        if self.recipe == "none" and options:
            raise InputError(f"{options[0]} = {getattr(self, options[0])} has no effect with recipe = 'none'")

    def imports(self) -> list[str]:
        """Return the slow imports of fine-tuning."""
        return [] if self.recipe == "none" else ["pytorch_lightning"]

    def milestones(self, labelled: bool) -> Sequence[Mapping[str, Any]]:
        """Return the levels of the grid below this one; for the elbow, all of them."""
        levels: list[float] = []
        end = self.level if isinstance(self.level, float) else 1.0
        if labelled and (self.level == ELBOW or self.recipe != "none"):
            levels = [level for level in self.GRID if level < end]
        if self._equals_plain_level():
            levels.append(end)
        return [{"level": level, **CHOOSING} for level in levels]

    def _equals_plain_level(self) -> bool:
        """Return whether this differs from a part of the same level only in options of the elbow."""
        chosen_by = {name: getattr(self, name) for name in CHOOSING}
        return self.level != ELBOW and chosen_by != CHOOSING

    def compress(self, network: Network, data: Data, workspace: Workspace) -> Network:
        """Prune to this level and fine-tune.

        Raises
        ------
        Unsupported
            If the network is not a torch module, or has no convolution to prune.
        """
        level = self.level
        assert isinstance(level, float)  # :meth:`choose` handles the elbow
        if not isinstance(network, TorchNetwork):
            raise Unsupported("pruning needs a torch module; this network is an ONNX graph")
        labelled = data.labelled and network.facts.trained
        recipe = self.fine_tuning(level, data, labelled)
        started = time.monotonic()
        dense = network.facts.reached.get("curve") or [_point(network, level=0.0, ratio=0.0)]
        self.prune(network, level, data, workspace)
        if labelled:
            workspace.say(f"pruned to {level:.0%}: evaluating")
            score(network, data)
        before = _point(network)
        if recipe:
            from dlas.networks.training import fit  # here, because importing Lightning takes seconds

            own = replace(workspace, seed=_seed(workspace.seed, level))
            fit(network.module, data, recipe, own, keep_zeros(network.module))
            score(network, data)
        self._record(network, dense, before, recipe, time.monotonic() - started)
        return network

    def choose(self, candidates: Sequence[SavedNetwork]) -> Network | None:
        """Return the network at the elbow of the curve if the level is "elbow".

        A part that differs from another only in options of the elbow returns the network
        of that other.

        Raises
        ------
        Unsupported
            If the candidates have no accuracy.
        """
        if self.level != ELBOW:
            return candidates[-1].restore() if self._equals_plain_level() else None
        measured = [candidate.facts.validation_accuracy for candidate in candidates]
        accuracies = [accuracy for accuracy in measured if accuracy is not None]
        if len(accuracies) < len(measured):
            raise Unsupported("level = 'elbow' needs a trained network and images with labels to choose by")
        levels = (0.0, *self.GRID)
        by_tolerance = self.elbow == "tolerance"
        place = last_within(accuracies, self.tolerance) if by_tolerance else knee(levels, accuracies)
        network = candidates[place].restore()
        curve = candidates[-1].facts.reached["curve"]
        network.facts.reached = {**network.facts.reached, "level": levels[place], "curve": curve}
        return network

    def fine_tuning(self, level: float, data: Data, labelled: bool) -> Recipe | None:
        """Return the recipe for a level, its share of all epochs; None for no fine-tuning.

        Parameters
        ----------
        labelled : bool
            Whether the images have labels, and the network was trained on them.

        Raises
        ------
        Unsupported
            If a recipe is requested for images without labels or an untrained network.
        """
        if self.recipe == "none" or (self.recipe == "auto" and not labelled):
            return None
        if not labelled:
            raise Unsupported("fine-tuning needs a trained network and labels; use recipe = 'none'")
        recipe = FINE_TUNING[data.fine_tuning if self.recipe == "auto" else self.recipe]
        total = self.epochs or recipe.epochs
        below = sum(milder < level for milder in self.GRID)
        share = [total * number // len(self.GRID) for number in (below, below + 1)]
        epochs = max(1, share[1] - share[0])
        return replace(recipe, epochs=epochs, learning_rate=self.learning_rate or recipe.learning_rate)

    def _record(
        self,
        network: TorchNetwork,
        curve: list[dict[str, Any]],
        before: dict[str, Any],
        recipe: Recipe | None,
        seconds: float,
    ) -> None:
        """Write counts, the compression reached and the curve so far into the network's facts."""
        network.count()
        reached = {"level": self.level, **self.reached(network)}
        after = _point(
            network,
            level=self.level,
            ratio=reached["ratio"],
            accuracy_before=before["accuracy"],
            validation_accuracy_before=before["validation_accuracy"],
            epochs=recipe.epochs if recipe else 0,
            seconds=seconds,
        )
        network.facts.reached = {**network.facts.reached, **reached, "curve": [*curve, after]}


def ratios(network: TorchNetwork) -> dict[str, Any]:
    """Return the share of the dense network's convolution weights that is zero or removed, also by layer."""
    weights, dense = conv_weights(network.module), network.facts.dense_shapes
    sizes = {name: math.prod(dense.get(name, weight.shape)) for name, weight in weights.items()}
    pruned = {name: sizes[name] - int(weight.count_nonzero()) for name, weight in weights.items()}
    layers = {name: pruned[name] / sizes[name] for name in weights}
    return {"ratio": sum(pruned.values()) / sum(sizes.values()), "layers": layers}


def _point(network: Network, **more: Any) -> dict[str, Any]:
    """Return a point of a curve: the network's accuracies beside ``more``."""
    facts = network.facts
    return {**more, "accuracy": facts.accuracy, "validation_accuracy": facts.validation_accuracy}


def _seed(seed: int, level: float) -> int:
    """Return a seed for a level's fine-tuning, so that no level repeats the order of another."""
    return int(np.random.SeedSequence((seed, round(level * 1e6))).generate_state(1)[0])
