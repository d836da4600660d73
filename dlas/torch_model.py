"""What all models made of torch modules share: construction, weights from files, training, restoring."""

from __future__ import annotations

import difflib
from abc import abstractmethod
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Literal

import safetensors.torch
import torch
from pydantic import Field
from torch import nn

from dlas.data import Data
from dlas.errors import InputError
from dlas.networks import WEIGHTS_FILE, TorchNetwork, score
from dlas.recipe import RECIPES, Recipe
from dlas.stack import Facts, Model, Network, Unsupported, Workspace

RecipeName = Literal["auto", "paper", "short", "none"]
Epochs = Annotated[int, Field(ge=1, le=100_000)] | None
Width = Annotated[float, Field(gt=0, le=8)]

SETTLING_IMAGES = 16
"""Images that an untrained network's batch norms take their statistics from."""
SHOWN = 3
"""Names that an error lists of each kind."""


class TorchModel(Model):
    """A model whose network is a torch module.

    Subclasses give :meth:`module`; one with options for training or weights
    also overrides :meth:`recipe_for` and :meth:`weights_file`.
    """

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
        return None

    def imports(self) -> list[str]:
        """Return what training imports, unless the option ``recipe`` says that there is none."""
        return [] if getattr(self, "recipe", "none") == "none" else ["pytorch_lightning"]

    def weights_file(self) -> Path | None:
        """Return the file that the weights come from, or None for random ones."""
        return None

    def adapt(self, state: dict[str, torch.Tensor]) -> dict[str, torch.Tensor]:
        """Return the tensors of a weights file under the names that the module uses."""
        return state

    def verify(self) -> None:
        """Read the weights file, if one is named; whether it fits is known once there is a network."""
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
            If the weights file is damaged or of another network, or options contradict each other.
        """
        recipe, path = self.recipe_for(data), self.weights_file()
        if recipe and not data.labelled:
            raise Unsupported(f"{self!r}: these images have no labels to train on; use recipe = 'none'")
        network = self.construct(Facts(data.shape, data.classes), workspace.seed)
        if path:
            load_weights(network.module, self.adapt(read_weights(path)), str(path))
        if recipe:
            from dlas.training import fit  # here, because importing Lightning takes seconds

            fit(network.module, data, recipe, workspace)
        facts = network.facts
        facts.trained = bool(path or recipe)
        if not facts.trained:
            _settle_norms(network.module, data, workspace.seed)
        facts.note = "untrained" if not facts.trained else f"weights from {path}" if path else None
        if facts.trained and data.labelled:
            workspace.say("evaluating")
            score(network, data)
        network.count()
        return network

    def restore(self, folder: Path, facts: Facts) -> Network:
        """Return the network whose weights were saved in ``folder``."""
        network = self.construct(facts, seed=0)
        path = folder / WEIGHTS_FILE
        load_weights(network.module, read_weights(path), str(path))
        return network

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
                # One image now rather than after an hour of training.
                with torch.no_grad():
                    network.module(torch.zeros(1, *facts.shape))
            except (RuntimeError, ValueError, AssertionError) as error:
                size = "x".join(map(str, facts.shape))
                raise Unsupported(f"{self!r} cannot take images {size}: {error}") from error
        return network


@dataclass(frozen=True)
class CifarModel(TorchModel):
    """A network for small images that is trained here.

    Parameters
    ----------
    width : float
        Multiplies the number of channels of every layer; see :func:`scaled`.
    recipe : {"auto", "paper", "short", "none"}
        How to train; "auto" takes what suits the data set, and does not train
        where weights come from a file or images have no labels.
    epochs : int, optional
        Instead of the recipe's own number.
    weights : str
        "none", or a file to start from: safetensors, or a torch state dict.
    """

    width: Width = 1.0
    recipe: RecipeName = "auto"
    epochs: Epochs = None
    weights: str = "none"

    def recipe_for(self, data: Data) -> Recipe | None:
        """Return how to train on ``data``, or None for not at all."""
        return chosen_recipe(self.recipe, self.epochs, self.weights, data)

    def weights_file(self) -> Path | None:
        """Return the file to start from, if one is named."""
        return None if self.weights == "none" else Path(self.weights).expanduser()


def chosen_recipe(name: RecipeName, epochs: int | None, weights: str, data: Data) -> Recipe | None:
    """Return the recipe that a model's options name, or None for not training.

    "auto" is the data set's own, and none where weights come from a file or
    images have no labels.

    Raises
    ------
    InputError
        If ``epochs`` is given for a training that does not take place.
    """
    if name == "none" and epochs:
        raise InputError(f"epochs = {epochs} has no effect with recipe = 'none'")
    if name == "none" or (name == "auto" and (weights != "none" or not data.labelled)):
        return None
    recipe = RECIPES[data.recipe if name == "auto" else name]
    return replace(recipe, epochs=epochs) if epochs else recipe


def scaled(channels: int, width: float) -> int:
    """Return ``channels`` times ``width``, rounded to a multiple of 8 and at least 8.

    Multiples of 8 keep vector units full at every width.
    """
    return max(8, 8 * round(channels * width / 8))


def _settle_norms(module: nn.Module, data: Data, seed: int) -> None:
    """Let batch norms see a few images, so that the outputs of an untrained network depend on its input.

    With the statistics that they start from, signals fade from layer to layer
    until only the last bias is left, and any build would seem to be right.
    """
    norms = [each for each in module.modules() if isinstance(each, nn.modules.batchnorm._BatchNorm)]
    if not norms:
        return
    momenta = [norm.momentum for norm in norms]
    for norm in norms:
        norm.momentum = None  # the statistics of exactly these images
    images, _ = data.train[list(range(min(SETTLING_IMAGES, len(data.train))))]
    with torch.no_grad(), torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        module.train()(torch.from_numpy(images))
    module.eval()
    for norm, momentum in zip(norms, momenta, strict=True):
        norm.momentum = momentum


# ---------------------------------------------------------------- weights from files


def read_weights(path: Path) -> dict[str, torch.Tensor]:
    """Read a safetensors file or a torch state dict; nothing in it is ever executed.

    Raises
    ------
    InputError
        If it is missing, damaged, or no state dict.
    """
    if not path.is_file():
        raise InputError(f"weights {str(path)!r}: there is no such file")
    try:
        if path.suffix == ".safetensors":
            return safetensors.torch.load_file(path)
        state = torch.load(path, map_location="cpu", weights_only=True)
    except Exception as error:  # both libraries raise many kinds on damaged files
        reason = str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
        raise InputError(
            f"weights {str(path)!r}: expected a safetensors file or a torch state dict, but {reason}"
        ) from error
    if isinstance(state, Mapping) and isinstance(state.get("state_dict"), Mapping):
        state = state["state_dict"]
    if not isinstance(state, Mapping) or not all(isinstance(value, torch.Tensor) for value in state.values()):
        raise InputError(f"weights {str(path)!r}: it holds no state dict (a mapping of names to tensors)")
    return dict(state)


def load_weights(module: nn.Module, state: Mapping[str, torch.Tensor], source: str) -> None:
    """Put the tensors of ``state`` into ``module``.

    Raises
    ------
    InputError
        If names or shapes differ; it quotes ``source`` and lists the first few.
    """
    own = module.state_dict()
    # Files from before torch 0.4.1 lack the counters, which evaluation does not read.
    missing = [name for name in own if name not in state and not name.endswith("num_batches_tracked")]
    surplus = [name for name in state if name not in own]
    shapes = [
        f"{name} is {list(state[name].shape)} and should be {list(own[name].shape)}"
        for name in own
        if name in state and state[name].shape != own[name].shape
    ]
    faults = [
        _listed("missing", [_with_nearest(name, surplus) for name in missing[:SHOWN]], len(missing)),
        _listed("unexpected", surplus[:SHOWN], len(surplus)),
        _listed("of another shape", shapes[:SHOWN], len(shapes)),
    ]
    if any(faults):
        raise InputError(
            f"weights {source!r} are not for this network ({len(own)} tensors expected): "
            + "; ".join(fault for fault in faults if fault)
        )
    own.update(state)  # it carries the versions that some layers ask for, which files do not
    module.load_state_dict(own)


def _listed(kind: str, shown: Iterable[str], count: int) -> str:
    """Return "3 missing: a, b, c", or nothing for a count of zero."""
    more = f" and {count - SHOWN} more" if count > SHOWN else ""
    return f"{count} {kind}: {', '.join(shown)}{more}" if count else ""


def _with_nearest(name: str, others: Collection[str]) -> str:
    """Return the name, with the most similar of ``others`` beside it."""
    nearest = difflib.get_close_matches(name, others, n=1)
    return f"{name} (nearest in the file: {nearest[0]})" if nearest else name
