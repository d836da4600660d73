"""Base of models made of torch modules: construction, weights from files, training, restoring."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Literal

import torch
from pydantic import Field
from torch import nn

from dlas.errors import InputError, Unsupported
from dlas.networks.norms import too_few_values
from dlas.networks.origins import SeededConstruction, complete_state, saved_origin
from dlas.networks.recipes import RECIPES, Recipe
from dlas.networks.scoring import score
from dlas.networks.torch.network import TorchNetwork
from dlas.networks.weights import WEIGHTS_FILE, load_weights, read_weights
from dlas.stack import Data, Facts, Model, Network, Workspace

RecipeName = Literal["auto", "paper", "short", "none"]
Epochs = Annotated[int, Field(ge=1, le=100_000)] | None
Width = Annotated[float, Field(gt=0, le=8)]
CALIBRATION_IMAGES = 16
"""Images that an untrained network's batch norms take their statistics from."""


class TorchModel(Model):
    """A model whose network is a torch module.

    Subclasses define :meth:`module`.  By default the weights are random and the network is
    not trained; a subclass may declare any of the attributes as an option.
    """

    recipe: RecipeName = "none"
    """How to train; "auto" takes the data set's recipe, and does not train if weights come from a file or
    images have no labels.
    """
    epochs: Epochs = None
    """Instead of the recipe's own number."""
    weights: str = "none"
    """"none", or a file to start from: safetensors, or a torch state dict."""

    @abstractmethod
    def module(self, shape: tuple[int, int, int], classes: int) -> nn.Module:
        """Return the network for images [c, h, w], with random weights.

        Maps images [n, c, h, w] to outputs [n, classes].

        Raises
        ------
        ValueError
            If the architecture cannot take this shape or number of classes.
        """

    def recipe_for(self, data: Data) -> Recipe | None:
        """Return how to train on ``data``, or None for not at all."""
        from_file_or_unlabelled = self.weights != "none" or not data.labelled
        if self.recipe == "none" or (self.recipe == "auto" and from_file_or_unlabelled):
            return None
        recipe = RECIPES[data.recipe if self.recipe == "auto" else self.recipe]
        return replace(recipe, epochs=self.epochs) if self.epochs else recipe

    def imports(self) -> list[str]:
        """Return the slow imports of training, if the options allow any training."""
        return [] if self.recipe == "none" else ["pytorch_lightning"]

    def weights_file(self) -> Path | None:
        """Return the file that the weights come from, or None for random ones."""
        return None if self.weights == "none" else Path(self.weights).expanduser()

    def adapt(self, state: dict[str, torch.Tensor]) -> dict[str, torch.Tensor]:
        """Return the tensors of a weights file under the names that the module uses."""
        return state

    def verify(self) -> None:
        """Read the weights file, if one is named; :meth:`build` checks that it fits the network.

        Raises
        ------
        InputError
            If the file is damaged, or ``epochs`` is given for a training that does not take place.
        """
        if self.recipe == "none" and self.epochs:
            raise InputError(f"epochs = {self.epochs} has no effect with recipe = 'none'")
        path = self.weights_file()
        if path:
            read_weights(path)

    def files(self) -> list[Path]:
        """Return the weights file, if there is one."""
        path = self.weights_file()
        return [path] if path else []

    def build(self, data: Data, workspace: Workspace) -> Network:
        """Construct the network, load or train its weights, and evaluate it in full.

        Raises
        ------
        Unsupported
            If the network cannot take images of this shape, or would have to
            be trained on images without labels.
        InputError
            If the weights file is damaged or of another network.
        """
        recipe, path = self.recipe_for(data), self.weights_file()
        if recipe and not data.labelled:
            raise Unsupported(f"{self!r}: these images have no labels to train on; use recipe = 'none'")
        network = self.construct(Facts(data.shape, data.classes), workspace.seed)
        if path:
            load_weights(network.module, self.adapt(read_weights(path)), str(path))
        if recipe:
            from dlas.networks.training import fit  # here, because importing Lightning takes seconds

            fit(network.module, data, recipe, workspace)
        facts = network.facts
        facts.trained = bool(path or recipe)
        if not facts.trained:
            network.origin = SeededConstruction(workspace.seed, lambda: self._dense(facts, workspace.seed))
            _calibrate_norms(network.module, data, workspace.seed)
        facts.note = "untrained" if not facts.trained else f"weights from {path}" if path else None
        if facts.trained and data.labelled:
            workspace.say("evaluating")
            score(network, data)
        network.count()
        return network

    def untrainable(self, data: Data, batch: int) -> str | None:
        """Return that a batch norm gets too few values from ``batch`` images, or None."""
        with torch.device("meta"):  # without memory, so that nothing is computed
            try:
                module = self.module(data.shape, data.classes)
            except Exception:  # whatever a user's module raises: making the network tells what is wrong
                return None
        return too_few_values(module, (batch, *data.shape))

    def restore(self, folder: Path, facts: Facts) -> Network:
        """Return the network whose weights were saved in ``folder``."""
        network, state = self.dense(folder, facts)
        load_weights(network.module, state, str(folder / WEIGHTS_FILE))
        return network

    def dense(self, folder: Path, facts: Facts) -> tuple[TorchNetwork, dict[str, torch.Tensor]]:
        """Return the network as constructed, and the tensors that were saved in ``folder``.

        Raises
        ------
        CorruptArtifact
            If weights that follow from a seed are not those that were saved.
        """
        origin = saved_origin(folder, lambda seed: self._dense(facts, seed))
        network = self.construct(facts, origin.seed if origin else 0)
        network.origin = origin
        return network, complete_state(folder, origin, network.module)

    def _dense(self, facts: Facts, seed: int) -> nn.Module:
        """Return the module with the weights that follow from ``seed``."""
        return self.construct(Facts(facts.shape, facts.classes), seed).module

    def construct(self, facts: Facts, seed: int) -> TorchNetwork:
        """Return the network with random weights that follow from ``seed``.

        Raises
        ------
        Unsupported
            If the architecture cannot take images of this shape.
        """
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            try:
                network = TorchNetwork(self.module(facts.shape, facts.classes), facts)
                # Try one image now, not after an hour of training.
                with torch.no_grad():
                    network.module(torch.zeros(1, *facts.shape))
            except (RuntimeError, ValueError, AssertionError) as error:
                size = "x".join(map(str, facts.shape))
                raise Unsupported(f"{self!r} cannot take images {size}: {error}") from error
        return network


@dataclass(frozen=True)
class CifarModel(TorchModel):
    """A network for small images, trained by this project."""

    width: Width = 1.0
    """Multiplies the number of channels of every layer; see :func:`scaled`."""
    recipe: RecipeName = "auto"
    """How to train; "auto" takes the data set's recipe, and does not train if weights come from a file or
    images have no labels.
    """
    epochs: Epochs = None
    """Instead of the recipe's own number."""
    weights: str = "none"
    """"none", or a file to start from: safetensors, or a torch state dict."""


def scaled(channels: int, width: float) -> int:
    """Return ``channels`` times ``width``, rounded to a multiple of 8 and at least 8.

    Multiples of 8 keep vector units full at every width.
    """
    return max(8, 8 * round(channels * width / 8))


def _calibrate_norms(module: nn.Module, data: Data, seed: int) -> None:
    """Set batch norm statistics from a few images, so that untrained networks' outputs depend on the input.

    With the initial statistics signals fade from layer to layer until only the
    last bias is left, and a check would accept any build.
    """
    norms = [layer for layer in module.modules() if isinstance(layer, nn.modules.batchnorm._BatchNorm)]
    if not norms:
        return
    momenta = [norm.momentum for norm in norms]
    for norm in norms:
        norm.momentum = None  # the statistics of exactly these images
    images, _ = data.train[list(range(min(CALIBRATION_IMAGES, len(data.train))))]
    with torch.no_grad(), torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        module.train()(torch.from_numpy(images))
    module.eval()
    for norm, momentum in zip(norms, momenta, strict=True):
        norm.momentum = momentum
