"""A data set and networks small enough to train in a test, and the steps that make them."""

from __future__ import annotations

import functools
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import nn

from dlas.datasets.digits import shake
from dlas.engine.planning import Planner, Step
from dlas.engine.steps import network
from dlas.networks.torch_model import CifarModel
from dlas.networks.torch_network import TorchNetwork
from dlas.networks.weights import WEIGHTS_FILE, read_weights
from dlas.stack import Arrays, Data, Dataset, Facts, Settings, Workspace
from dlas.store.cache import Artifact, Cache
from dlas.study.point import Point
from dlas.study.study import Study

SHAPE = (3, 8, 8)
CLASSES = 4
HEAD = """
name = "tiny"
[axes]
compiler = ["tests.stubs:StubCompiler"]
hardware = ["tests.stubs:StubHardware"]
"""
LEVELS = 'compression = [{ name = "weight_pruning", epochs = 7, level = %s }]'
"""Of an axis; an epoch a level."""
NOISE = 'dataset = [{ name = "random", size = 8, images = 16, classes = 4 }]'
USUAL = """
dataset = ["tests.tiny:TinyDataset"]
model = ["tests.tiny:TinyModel"]
"""


@dataclass(frozen=True)
class TinyDataset(Dataset):
    """Noise whose class shows in its mean."""

    def load(self) -> Data:
        """Return 96 images to train on, 64 to choose by and 64 to report."""
        train, validation, test = (_split(seed, count) for seed, count in enumerate((96, 64, 64)))
        return Data(train, validation, test, SHAPE, CLASSES, augment=shake, recipe="short")


def _split(seed: int, count: int) -> Arrays:
    generator = np.random.default_rng(seed)
    labels = generator.integers(0, CLASSES, count)
    images = generator.standard_normal((count, *SHAPE), np.float32)
    return Arrays(images + labels[:, None, None, None].astype(np.float32), labels)


class Tiny(nn.Module):
    """A stem, a grouped and a depthwise convolution, a residual: few filters, and odd numbers of them."""

    def __init__(self, channels: int, classes: int) -> None:
        super().__init__()
        self.stem = nn.Sequential(nn.Conv2d(channels, 10, 3, padding=1, bias=False), nn.BatchNorm2d(10))
        self.grouped = nn.Conv2d(10, 14, 3, padding=1, groups=2)
        self.depthwise = nn.Conv2d(14, 14, 3, padding=1, groups=14, bias=False)
        self.norm = nn.BatchNorm2d(14)
        self.pointwise = nn.Conv2d(14, 14, 1)
        self.classifier = nn.Linear(14, classes)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = torch.relu(self.grouped(torch.relu(self.stem(x))))
        x = x + self.pointwise(torch.relu(self.norm(self.depthwise(x))))
        outputs: torch.Tensor = self.classifier(torch.relu(x).mean((2, 3)))
        return outputs


@dataclass(frozen=True)
class TinyModel(CifarModel):
    """The tiny network, trained in a second."""

    def module(self, shape: tuple[int, int, int], classes: int) -> nn.Module:
        """Return the network with random weights."""
        return Tiny(shape[0], classes)


@dataclass(frozen=True)
class NoConvolutions(CifarModel):
    """A linear map of the image."""

    def module(self, shape: tuple[int, int, int], classes: int) -> nn.Module:
        """Return the network with random weights."""
        return nn.Sequential(nn.Flatten(), nn.Linear(shape[0] * shape[1] * shape[2], classes))


def study_of(axes: str) -> Study:
    """Return a study of the tiny network on the tiny data set, as far as ``axes`` leaves them out."""
    return Study.parse(text_of(axes))


def text_of(axes: str) -> str:
    """Return the text of :func:`study_of`."""
    given = {line.partition("=")[0].strip() for line in axes.splitlines()}
    usual = "\n".join(line for line in USUAL.splitlines() if line.partition("=")[0].strip() not in given)
    return HEAD + usual + "\n" + axes


@functools.cache
def tiny_data() -> Data:
    """Return the tiny data set, read once."""
    return TinyDataset().load()


def network_of(module: nn.Module, trained: bool = True) -> TorchNetwork:
    """Return a module as a network, said to be trained or not."""
    return TorchNetwork(module, Facts(SHAPE, CLASSES, trained=trained))


def tiny() -> TorchNetwork:
    """Return the tiny network with random weights, said to be trained."""
    torch.manual_seed(0)
    return network_of(Tiny(SHAPE[0], CLASSES))


def workspace(folder: Path, seed: int = 0) -> Workspace:
    """Return the workspace of a step that nobody listens to."""
    return Workspace(seed, folder, lambda line: None)


class Silent:
    """The channel of a step that nobody listens to."""

    def say(self, text: str) -> None:
        """Say nothing."""


def network_steps(point: Point, root: Path) -> list[Step]:
    """Return the steps that make a point's network, the dense one first."""
    return [step for step in Planner(Settings(), root).plan(point).steps if step.name == "network"]


def make_network(point: Point, root: Path) -> list[Artifact]:
    """Make what is not yet there of a point's networks, in this process; return them, the dense one first."""
    cache, found = Cache(root), []
    for step in network_steps(point, root):
        if cache.get("network", step.key) is None:
            network.run(**step.arguments, channel=Silent())  # type: ignore[arg-type]
        artifact = cache.get("network", step.key)
        assert artifact is not None
        found.append(artifact)
    return found


def the_point(axes: str) -> Point:
    """Return the only point of a study."""
    (point,) = study_of(axes).points()
    return point


def weights_of(artifact: Artifact) -> dict[str, Any]:
    """Return the convolutions' weights of a saved network, by the layer's name."""
    state = read_weights(artifact.folder / WEIGHTS_FILE)
    return {name.removesuffix(".weight"): value for name, value in state.items() if value.ndim == 4}
