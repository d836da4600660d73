"""Stripes under noise: their direction is the class."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import numpy as np
from dlas.datasets.digits import random_affine
from pydantic import Field

from dlas.stack import Arrays, Data, Dataset

CLASSES = 4


@dataclass(frozen=True)
class Stripes(Dataset):
    """Stripes in four directions, 16 images in each split.

    Parameters
    ----------
    size : int
        Height and width.
    """

    size: Annotated[int, Field(ge=4, le=64)] = 8

    def load(self) -> Data:
        """Return three splits, each with noise of its own."""
        splits = [self._split(seed) for seed in range(3)]
        return Data(*splits, (3, self.size, self.size), CLASSES, augment=random_affine, recipe="short")

    def _split(self, seed: int) -> Arrays:
        labels = np.arange(16, dtype=np.int64) % CLASSES
        row, column = np.mgrid[: self.size, : self.size]
        waves = np.stack([np.sin(each) for each in (row, column, row + column, row - column)])
        noise = np.random.default_rng(seed).normal(0, 0.3, (16, 3, self.size, self.size))
        return Arrays((waves[labels][:, None] + noise).astype(np.float32), labels)
