"""A data set and a network small enough to train in a second, for checks of parts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from torch import nn

from dlas.axes.datasets.digits import random_affine
from dlas.axes.datasets.random import Random
from dlas.networks.torch.model import CifarModel
from dlas.networks.torch.network import TorchNetwork
from dlas.stack import Arrays, Data, Dataset, Facts, Images, Network, Workspace

SHAPE = (3, 8, 8)
CLASSES = 4


@dataclass(frozen=True)
class TinyDataset(Dataset):
    """Noise with a mean that depends on the class."""

    def load(self) -> Data:
        """Return 96 images to train, 64 to validate and 64 to test."""
        train, validation, test = (_split(seed, count) for seed, count in enumerate((96, 64, 64)))
        return Data(train, validation, test, SHAPE, CLASSES, augment=random_affine, recipe="short")


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
        """Map images [n, c, h, w] to outputs [n, classes]."""
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


class TwoStages(nn.Module):
    """A stem and two stages of two blocks, as residual networks have."""

    def __init__(self, channels: int, classes: int) -> None:
        super().__init__()
        self.stem = nn.Sequential(nn.Conv2d(channels, 16, 3, padding=1, bias=False), nn.BatchNorm2d(16))
        self.layer1 = nn.Sequential(_block(16, 16, 1), _block(16, 16, 1))
        self.layer2 = nn.Sequential(_block(16, 32, 2), _block(32, 32, 1))
        self.classifier = nn.Linear(32, classes)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Map images [n, c, h, w] to outputs [n, classes]."""
        x = self.layer2(self.layer1(torch.relu(self.stem(x))))
        outputs: torch.Tensor = self.classifier(x.mean((2, 3)))
        return outputs


def _block(read: int, written: int, stride: int) -> nn.Sequential:
    return nn.Sequential(
        nn.Conv2d(read, written, 3, stride, padding=1, bias=False), nn.BatchNorm2d(written), nn.ReLU()
    )


@dataclass(frozen=True)
class StagedModel(CifarModel):
    """The staged network, trained in a second."""

    def module(self, shape: tuple[int, int, int], classes: int) -> nn.Module:
        """Return the network with random weights."""
        return TwoStages(shape[0], classes)


def noise(shape: tuple[int, int, int] = SHAPE, classes: int = CLASSES) -> Data:
    """Return a data set of noise without labels, images [c, h, w] whose sides are equal."""
    channels, size, _ = shape
    return Random(size=size, channels=channels, classes=classes, images=16).load()


def tiny_network(seed: int = 0) -> TorchNetwork:
    """Return the tiny network with random weights."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        return TorchNetwork(Tiny(SHAPE[0], CLASSES), Facts(SHAPE, CLASSES))


def random_images(batch: int, shape: Sequence[int] = SHAPE, seed: int = 0) -> Images:
    """Return random images [batch, c, h, w]."""
    return np.random.default_rng(seed).standard_normal((batch, *shape)).astype(np.float32)


def saved_files(network: Network, folder: Path) -> dict[str, bytes]:
    """Return the files that a network writes into a new folder, by name."""
    folder.mkdir(parents=True)
    network.save(folder)
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def workspace(folder: Path, seed: int = 0) -> Workspace:
    """Return a new workspace whose progress is not shown."""
    folder.mkdir(parents=True)
    return Workspace(seed, folder, lambda line: None)
