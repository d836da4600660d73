"""Noise of any shape, for timing networks without a data set."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, ClassVar

import numpy as np
from pydantic import Field

from dlas.stack import Data, Dataset, Images, Labels


@dataclass(frozen=True)
class Random(Dataset):
    """Seeded normal noise; its labels carry no information, so accuracy is null."""

    labelled: ClassVar[bool] = False

    size: Annotated[int, Field(ge=1, le=4096)] = 32
    """Height and width."""
    channels: Annotated[int, Field(ge=1, le=4096)] = 3
    classes: Annotated[int, Field(ge=1, le=1_000_000)] = 10
    """Number of outputs of a network for this data."""
    images: Annotated[int, Field(ge=1, le=1_000_000)] = 64
    """Images in each of the three splits."""
    seed: Annotated[int, Field(ge=0)] = 0

    def load(self) -> Data:
        """Return three splits of noise, generated when read."""
        shape = (self.channels, self.size, self.size)
        train, validation, test = (
            Noise((self.seed, number), self.images, shape, self.classes) for number in range(3)
        )
        return Data(train, validation, test, shape, self.classes, labelled=self.labelled, recipe="short")


@dataclass(frozen=True)
class Noise:
    """A split of noise."""

    seed: tuple[int, int]
    length: int
    shape: tuple[int, int, int]
    """One image, (c, h, w)."""
    classes: int

    def __len__(self) -> int:
        return self.length

    def __getitem__(self, indices: Sequence[int]) -> tuple[Images, Labels]:
        # One generator for each image: an image does not depend on the others read with it.
        generators = [np.random.default_rng((*self.seed, int(index))) for index in indices]
        labels = np.array([generator.integers(self.classes) for generator in generators], np.int64)
        images = [generator.standard_normal(self.shape, np.float32) for generator in generators]
        return np.stack(images), labels
