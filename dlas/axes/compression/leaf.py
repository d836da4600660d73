"""LeAF: shallow phases beside a frozen network's own, and the network at one of the paths through them."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any, Literal

import numpy as np
import torch
from pydantic import Field
from torch import nn

from dlas.axes.compression.flexible.module import DEEP, SHALLOW, FlexibleModule, flexible
from dlas.axes.compression.flexible.network import ALL, FlexibleNetwork, flexible_origin
from dlas.axes.compression.flexible.recipes import recipe_for
from dlas.axes.compression.flexible.scoring import path_accuracies, path_macs, undominated
from dlas.axes.compression.pruning.widths import narrow
from dlas.errors import InputError, Unsupported
from dlas.networks.origins import complete_state, saved_origin
from dlas.networks.recipes import Recipe
from dlas.networks.torch.model import TorchModel
from dlas.networks.torch.network import TorchNetwork
from dlas.networks.weights import WEIGHTS_FILE, load_weights
from dlas.stack import Compression, Data, Facts, Model, Network, SavedNetwork, Workspace

CALIBRATION_IMAGES = 16
"""Images that the batch norms of new shallow phases take their statistics from."""
AUTO = "auto"
NOTHING = "leaves nothing to train: the path of zeros takes no shallow phase"


@dataclass(frozen=True)
class Leaf(Compression):
    """A legacy network with a shallow phase beside each of its phases: the network at a path through them.

    The legacy network stays as it is, bit for bit.  Shallow phases have the same blocks at a share of all
    channels, and weights drawn from the legacy ones.  They are trained once for all paths, on
    the sum of the paths' losses, each divided by its mean over the last 100 steps; then, with
    ``stage = "fine_tuned"``, on the paths that are kept alone.

    References
    ----------
    J. Clemons et al., "Augmenting Legacy Networks for Flexible Inference", ECCV workshops 2022.
    """

    path: Annotated[str, Field(pattern=r"^([01]+|all)$")]
    """A digit for each phase, 0 for the network's own and 1 for the shallow one: "0110"; or "all", the
    flexible network, which computes the path of zeros and is what all others are chosen from.
    """
    share: Annotated[float, Field(gt=0, lt=1)] = 0.25
    """Channels of a shallow phase, as a share of the phase's own; in multiples of 8."""
    stage: Literal["base", "fine_tuned"] = "base"
    """After the training on all paths, or after that on the paths that are kept, too."""
    keep: Annotated[str, Field(pattern=r"^(auto|[01]+( [01]+)*)$")] = AUTO
    """The paths to keep: "auto", the Pareto set by accuracy on validation images and multiply-adds after base
    training; or paths with spaces between them, as ``dlas paths`` prints them from measured rows.
    """
    recipe: Literal["auto", "paper", "digits", "none"] = "auto"
    """How to train; "auto" takes what suits the data set, and does not train if the network is untrained or
    images have no labels.
    """
    epochs: Annotated[int, Field(ge=1, le=100_000)] | None = None
    """Of each training, instead of the recipe's own numbers."""

    def verify(self) -> None:
        """Refuse options without an effect, and fine-tuning of nothing.

        Raises
        ------
        InputError
        """
        if self.stage == "base" and self.keep != AUTO:
            raise InputError(f"keep = {self.keep!r} has no effect with stage = 'base': all paths are kept")
        if self.keep != AUTO and SHALLOW not in self.keep:
            raise InputError(f"keep = {self.keep!r} {NOTHING}")
        if self.recipe == "none" and self.epochs:
            raise InputError(f"epochs = {self.epochs} has no effect with recipe = 'none'")

    def files(self) -> list[Path]:
        """Return no file: no option names one."""
        return []

    def imports(self) -> list[str]:
        """Return the slow imports of training; choosing a path needs none."""
        return ["pytorch_lightning"] if self.path == ALL and self.recipe != "none" else []

    def milestones(self, labelled: bool) -> Sequence[Mapping[str, Any]]:
        """Return the trainings: on all paths, then on those that are kept."""
        base = {"path": ALL, "stage": "base", "keep": AUTO}
        trainings = [base] if self.stage == "base" else [base, {"path": ALL}]
        return trainings if self.path != ALL else trainings[:-1]

    def compress(self, network: Network, data: Data, workspace: Workspace) -> Network:
        """Add the shallow phases and train them on all paths, or train on the paths that are kept.

        Raises
        ------
        Unsupported
            If the network is no torch module, or has no phases; or it cannot be trained, and is to be.
        """
        if not isinstance(network, TorchNetwork):
            raise Unsupported("leaf needs a torch module; this network is an ONNX graph")
        started = time.monotonic()
        labelled = data.labelled and network.facts.trained
        recipe = self.training(data, labelled, network.module)
        if isinstance(network, FlexibleNetwork):
            made, trained = network, self._kept(network)
        else:
            made = self._augmented(network, workspace.seed)
            trained = made.module.paths
            if network.facts.trained:
                _calibrate(made.module, data)
        if recipe:
            _train(made.module, data, recipe, trained, replace(workspace, seed=self._seed(workspace.seed)))
        self._record(made, data if labelled else None, trained, time.monotonic() - started)
        return made

    def choose(self, candidates: Sequence[SavedNetwork]) -> Network | None:
        """Return the network at the path, which the trained network holds.

        Raises
        ------
        Unsupported
            If the network has no such path.
        """
        if self.path == ALL:
            return None
        network = candidates[-1].restore()
        assert isinstance(network, FlexibleNetwork)  # the last milestone's
        return network.at(self.path)

    def restore(self, model: Model, folder: Path, facts: Facts) -> Network:
        """Return the saved network: the model's own with the shallow phases of the path, or with all.

        It is as narrow as its saved tensors: a technique before this one may have removed channels.

        Raises
        ------
        Unsupported
            If the model does not make torch modules.
        """
        if not isinstance(model, TorchModel):
            raise Unsupported(f"{model!r} does not make torch modules, which have phases")
        source = str(folder / WEIGHTS_FILE)
        if self.path == ALL:
            return self._restored(model, folder, facts, source)
        network, state = model.dense(folder, facts)
        network.module = flexible(network.module, self.share, 0).at(self.path)
        narrow(network.module, state)
        load_weights(network.module, state, source)
        return network

    def training(self, data: Data, labelled: bool, module: nn.Module) -> Recipe | None:
        """Return how to train in this stage, None for not at all.

        Parameters
        ----------
        labelled : bool
            Whether the images have labels, and the network was trained on them.

        Raises
        ------
        Unsupported
            If training is requested for images without labels or an untrained network.
        """
        if self.stage == "fine_tuned" and not (labelled and self.recipe != "none"):
            raise Unsupported("fine-tuning needs a trained network and labels; use stage = 'base'")
        if self.recipe == "none" or (self.recipe == AUTO and not labelled):
            return None
        if not labelled:
            raise Unsupported("training paths needs a trained network and labels; use recipe = 'none'")
        recipe: Recipe = getattr(recipe_for(self.recipe, data, module), self.stage)
        return replace(recipe, epochs=self.epochs) if self.epochs else recipe

    def _augmented(self, network: TorchNetwork, seed: int) -> FlexibleNetwork:
        module = flexible(network.module, self.share, network.origin.seed if network.origin else seed)
        made = FlexibleNetwork(module, network.facts, network.tolerance)
        made.origin = flexible_origin(network.origin, self.share)
        return made

    def _kept(self, network: FlexibleNetwork) -> list[str]:
        """Return the paths to fine-tune.

        Raises
        ------
        Unsupported
            If the network has no such path, or none of them takes a shallow phase.
        """
        if self.keep != AUTO:
            paths = self.keep.split()
            for path in paths:
                network.module.check(path)
            return list(dict.fromkeys(paths))
        told = network.facts.reached["paths"]
        accuracy = {path: facts["validation_accuracy"] for path, facts in told.items()}
        best = undominated(accuracy, {path: facts["macs"] for path, facts in told.items()})
        if SHALLOW not in "".join(best):
            raise Unsupported(f"the Pareto set after base training is {' '.join(best)}, which {NOTHING}")
        return best

    def _restored(self, model: TorchModel, folder: Path, facts: Facts, source: str) -> FlexibleNetwork:
        plain = Facts(facts.shape, facts.classes)
        origin = saved_origin(
            folder, lambda seed: flexible(model.construct(replace(plain), seed).module, self.share, seed)
        )
        seed = origin.seed if origin else 0
        module = flexible(model.construct(replace(plain), seed).module, self.share, seed)
        state = complete_state(folder, origin, module)
        narrow(module, state)
        load_weights(module, state, source)
        network = FlexibleNetwork(module, facts)
        network.origin = origin
        return network

    def _record(
        self, network: FlexibleNetwork, data: Data | None, trained: Sequence[str], seconds: float
    ) -> None:
        """Write counts, and what was reached on each path, into the network's facts."""
        module, facts = network.module, network.facts
        paths = module.paths
        told: dict[str, dict[str, Any]] = {
            path: {"macs": macs} for path, macs in path_macs(module, facts.shape, paths).items()
        }
        if data is not None:
            for name, split in (("accuracy", data.test), ("validation_accuracy", data.validation)):
                for path, value in path_accuracies(module, split, paths).items():
                    told[path][name] = value
        network.count()
        extra = sum(parameter.numel() for parameter in module.shallow.parameters())
        earlier = facts.reached.get("training_s", 0.0) if "path" in facts.reached else 0.0
        facts.reached = {
            **facts.reached,
            "path": ALL,
            "stage": self.stage,
            "phases": [phase.name for phase in module.phases],
            "kept": list(trained),
            "extra_parameters": extra,
            "training_s": earlier + seconds,
            "paths": told,
        }

    def _seed(self, seed: int) -> int:
        """Return a seed for a stage's training, so that none repeats the order of another."""
        stage = ("base", "fine_tuned").index(self.stage)
        return int(np.random.SeedSequence((seed, 1 + stage)).generate_state(1)[0])


def _train(
    module: FlexibleModule, data: Data, recipe: Recipe, paths: Sequence[str], workspace: Workspace
) -> None:
    """Train the shallow phases on paths; the legacy network is frozen meanwhile."""
    from dlas.axes.compression.flexible.loss import PathLoss
    from dlas.networks.training import fit  # here, because importing Lightning takes seconds

    module.legacy.requires_grad_(False)
    module.active = max(paths)  # progress tells its accuracy
    try:
        fit(module, data, recipe, workspace, objective=PathLoss(paths))
    finally:
        module.active = DEEP * len(module.phases)
        module.legacy.requires_grad_(True)


def _calibrate(module: FlexibleModule, data: Data) -> None:
    """Set the statistics of the shallow phases' batch norms from a few images that take all of them.

    An untrained network keeps those that it is constructed with, as its own phases do: to its random features
    all images are nearly the same, and normalising by what little they differ would amplify rounding errors.
    """
    norms = [layer for layer in module.shallow.modules() if isinstance(layer, nn.BatchNorm2d)]
    momenta = [norm.momentum for norm in norms]
    for norm in norms:
        norm.momentum = None  # the statistics of exactly these images
        norm.reset_running_stats()
    images, _ = data.train[list(range(min(CALIBRATION_IMAGES, len(data.train))))]
    path = SHALLOW * len(module.phases)
    with torch.no_grad():
        module.train().outputs(torch.from_numpy(images), [path])
    module.eval()
    for norm, momentum in zip(norms, momenta, strict=True):
        norm.momentum = momentum
