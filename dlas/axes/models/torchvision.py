"""Every classification network of torchvision, by torchvision's own name."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
import torchvision.models
from torch import nn

from dlas.errors import MissingData, unknown
from dlas.networks.torch import model as torch_model
from dlas.networks.torch.model import Epochs, RecipeName

AUXILIARY = ("aux1.", "aux2.", "AuxLogits.")
"""Classifiers that GoogLeNet and Inception v3 have for training only."""


def names() -> list[str]:
    """Return torchvision's names of its classification networks."""
    return list(torchvision.models.list_models(module=torchvision.models))


@dataclass(frozen=True)
class Torchvision(torch_model.TorchModel):
    """A torchvision classification network.

    Notes
    -----
    GoogLeNet and Inception v3 are built without auxiliary classifiers, and with
    the input normalisation that torchvision's pretrained weights need, for all
    weights, so that a file always means the same.
    """

    name: str
    """One of :func:`names`."""
    weights: str = "none"
    """"none" for random weights; "default" for torchvision's pretrained weights, if they are in torch's
    cache; or a file, e.g. a copy of torchvision's.
    """
    recipe: RecipeName = "none"
    """How to train; by default not at all."""
    epochs: Epochs = None
    """Instead of the recipe's own number."""

    def module(self, shape: tuple[int, int, int], classes: int) -> nn.Module:
        """Return the network with random weights."""
        if self.name not in names():
            raise unknown("torchvision classification network", self.name, names())
        options: dict[str, Any] = {"num_classes": classes}
        if self.name in ("googlenet", "inception_v3"):
            options |= {"aux_logits": False, "init_weights": False, "transform_input": True}
        if self.name.startswith("vit_"):
            options["image_size"] = shape[1]
        if self.name.startswith("maxvit"):
            options["input_size"] = shape[1:]
        module: nn.Module = torchvision.models.get_model(self.name, weights=None, **options)
        return module

    def weights_file(self) -> Path | None:
        """Return the file that the weights come from.

        Raises
        ------
        MissingData
            If torchvision's weights are requested and not in torch's cache.
        """
        if self.weights != "default":
            return super().weights_file()
        url = torchvision.models.get_model_weights(self.name).DEFAULT.url
        path = Path(torch.hub.get_dir(), "checkpoints", url.rpartition("/")[2])
        if not path.is_file():
            raise MissingData(
                f"{self.name} with weights 'default': there is no {path}. Bring it from {url}, run "
                f"torchvision.models.get_model({self.name!r}, weights='DEFAULT') in Python, or name a file "
                "with weights = '<path>'"
            )
        return path

    def adapt(self, state: dict[str, torch.Tensor]) -> dict[str, torch.Tensor]:
        """Return a weights file's tensors under today's names, without auxiliary classifiers."""
        tensors = {name: tensor for name, tensor in state.items() if not name.startswith(AUXILIARY)}
        if self.name.startswith("densenet"):  # its files have norm.1 for norm1
            dotted = re.compile(r"(denselayer\d+\.(?:norm|conv))\.(\d)")
            tensors = {dotted.sub(r"\1\2", name): tensor for name, tensor in tensors.items()}
        return tensors
