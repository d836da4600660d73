"""Data sets: labelled images in three splits."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, Protocol

import numpy as np
import numpy.typing as npt

from dlas.stack.part import Part

Images = npt.NDArray[np.float32]
"""Images of shape [n, c, h, w]."""
Labels = npt.NDArray[np.int64]
"""Class indices of shape [n]."""


class Split(Protocol):
    """Labelled images, read by index so that they need not fit in memory."""

    def __len__(self) -> int: ...

    def __getitem__(self, indices: Sequence[int]) -> tuple[Images, Labels]:
        """Return normalised images [len(indices), c, h, w] and their labels."""
        ...


@dataclass(frozen=True)
class Arrays:
    """A split held in memory."""

    images: Images
    """Float32 [n, c, h, w]."""
    labels: Labels
    """Int64 [n]."""

    def __len__(self) -> int:
        return len(self.labels)

    def __getitem__(self, indices: Sequence[int]) -> tuple[Images, Labels]:
        return self.images[indices], self.labels[indices]


@dataclass(frozen=True)
class Data:
    """The splits of a data set and their properties."""

    train: Split
    validation: Split
    test: Split
    """Disjoint. ``validation`` is for choices (early stops, pruning levels, calibration); ``test`` is for
    reporting only.
    """
    shape: tuple[int, int, int]
    """One image, (c, h, w)."""
    classes: int
    """Number of classes."""
    labelled: bool = True
    """False if labels carry no information (random images): accuracy is then null."""
    augment: Callable[[Any], Any] | None = None
    """Maps a batch of training images (a torch tensor [n, c, h, w]) to an augmented one of the same shape."""
    recipe: Literal["paper", "short"] = "paper"
    """The training recipe that suits the dataset's size."""
    fine_tuning: Literal["cifar10", "imagenet", "short"] = "short"
    """The recipe for fine-tuning after compression."""


class Dataset(Part, ABC):
    """The problem: images and labels in three disjoint splits."""

    labelled: ClassVar[bool] = True
    """False if labels carry no information, so that networks are not trained on them."""

    @abstractmethod
    def load(self) -> Data:
        """Read the data.

        Raises
        ------
        MissingData
            If the files are not where the options say.
        """
