"""Fashion-MNIST, from its authors' files, which a Debian package installs; MNIST's own files work too."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

import numpy as np
import numpy.typing as npt
import torch
from pydantic import Field

from dlas.axes.datasets.pixels.augmentation import mirrored_at_random, random_windows
from dlas.axes.datasets.pixels.idx import idx_file, read_images, read_labels
from dlas.axes.datasets.pixels.splits import hold_out
from dlas.errors import InputError, MissingData
from dlas.stack import Data, Dataset, Images, Labels

PACKAGE = "dataset-fashion-mnist"
"""Debian's."""
INSTALLED = "/usr/share/datasets/fashion-mnist"
"""Where the package puts its files."""
TRAIN_FILES = ("train-images-idx3-ubyte", "train-labels-idx1-ubyte")
TEST_FILES = ("t10k-images-idx3-ubyte", "t10k-labels-idx1-ubyte")
CLASSES = 10
SIDE = 28
BORDER = 2
"""Black pixels on each side, which make 32x32 of 28x28."""

MEAN = np.float32(0.2860)
DEVIATION = np.float32(0.3530)


@dataclass(frozen=True)
class FashionMnist(Dataset):
    """Fashion-MNIST: 70,000 photographs of clothes, 54,000 to train, 6,000 to validate, 10,000 to test.

    Grey images of 28x28 with a black border of 2 pixels, repeated in three channels.
    Levels from 0 to 1, less the mean 0.2860 and divided by the deviation 0.3530, those of
    Fashion-MNIST's training images without borders.  Validation images are a
    tenth of the training files, drawn once with a fixed seed.  Training images are moved by up
    to 2 pixels and mirrored at random.  MNIST's files have the same names and format.

    References
    ----------
    H. Xiao, K. Rasul and R. Vollgraf, "Fashion-MNIST: a Novel Image Dataset for Benchmarking
    Machine Learning Algorithms", 2017, https://arxiv.org/abs/1708.07747.
    """

    root: str = INSTALLED
    """The folder that holds the four idx files, gzipped or plain; by default that of Debian's package
    ``dataset-fashion-mnist``.
    """
    channels: Literal[1, 3] = 3
    """3 repeats the grey level, so that networks for coloured images take it as they are."""
    training_images: Annotated[int, Field(ge=1, le=100_000)] | None = None
    """Train on so many, drawn once with a fixed seed, instead of all; fewer are among more. Validation and
    test images stay the same.
    """
    mirror: bool = True
    """Mirror half of the training images; false for MNIST's digits, which have a direction."""

    def verify(self) -> None:
        """Read the files once before anything starts."""
        self.load()

    def load(self) -> Data:
        """Read the four files.

        Raises
        ------
        MissingData
            If a file is not there.
        InputError
            If a file is damaged or holds anything else, or there are too few images.
        """
        images, labels = self._read(*TRAIN_FILES)
        train, validation = self._split(len(labels))
        return Data(
            Greys(images[train], labels[train], self.channels),
            Greys(images[validation], labels[validation], self.channels),
            Greys(*self._read(*TEST_FILES), self.channels),
            shape=(self.channels, SIDE + 2 * BORDER, SIDE + 2 * BORDER),
            classes=CLASSES,
            augment=move_and_mirror if self.mirror else move,
            recipe="paper",
            fine_tuning="cifar10",
        )

    def _split(self, count: int) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
        """Return the indices of training images and of those held out, in the order of the file."""
        drawn, validation = hold_out(count)
        most = self.training_images or len(drawn)
        if not 1 <= most <= len(drawn):
            raise InputError(
                f"fashion_mnist with root {self.root!r}: training_images = {self.training_images}, "
                f"and there are {len(drawn):,} besides the {len(validation):,} to validate"
            )
        return np.sort(drawn[:most]), validation

    def _read(self, images_name: str, labels_name: str) -> tuple[npt.NDArray[np.uint8], Labels]:
        """Return the images of a file and their labels from another."""
        folder = Path(self.root).expanduser().absolute()
        places = {name: idx_file(folder, name) for name in (*TRAIN_FILES, *TEST_FILES)}
        images_file, labels_file = places[images_name], places[labels_name]
        if images_file is None or labels_file is None:
            missing = ", ".join(name for name, place in places.items() if place is None)
            raise MissingData(
                f"fashion_mnist with root {self.root!r}: no {missing}, with or without .gz, in {folder}. "
                f"`apt-get install {PACKAGE}` on Debian and Ubuntu puts them into {INSTALLED}; or fetch them "
                "from https://github.com/zalandoresearch/fashion-mnist"
            )
        images, labels = read_images(images_file, SIDE), read_labels(labels_file, CLASSES)
        if len(images) != len(labels):
            raise InputError(
                f"{labels_file} has {len(labels):,} labels for the {len(images):,} images of {images_file}"
            )
        return images, labels


@dataclass(frozen=True)
class Greys:
    """A split of grey images stored as bytes, framed and normalised when read."""

    pixels: npt.NDArray[np.uint8]
    """Uint8 [n, 28, 28]."""
    labels: Labels
    """Int64 [n]."""
    channels: int
    """How often each image is repeated."""

    def __len__(self) -> int:
        return len(self.labels)

    def __getitem__(self, indices: Any) -> tuple[Images, Labels]:
        chosen = self.pixels[indices]
        framed = np.pad(chosen, ((0, 0), (BORDER, BORDER), (BORDER, BORDER))).astype(np.float32)
        images = (framed / np.float32(255) - MEAN) / DEVIATION
        return np.repeat(images[:, None], self.channels, axis=1), self.labels[indices]


def move(images: torch.Tensor) -> torch.Tensor:
    """Move each normalised image [n, c, h, w] at random by up to its border, so that nothing is cut off."""
    return random_windows(images, torch.tensor(-MEAN / DEVIATION), BORDER)


def move_and_mirror(images: torch.Tensor) -> torch.Tensor:
    """Move each normalised image [n, c, h, w] at random, and mirror half of them."""
    return mirrored_at_random(move(images))
