"""Batches of training images: their order and augmentation follow from the seed alone."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import torch
from torch.utils.data import DataLoader, Dataset, Sampler

from dlas.networks.recipes import Recipe
from dlas.networks.scoring import loading_processes
from dlas.stack import Data, Split

Key = tuple[int, int, list[int]]
"""Epoch, number of the batch in it, and the images in the batch."""


def derive_seed(*numbers: int) -> int:
    """Return a seed of 64 bits that follows from the numbers."""
    return int(np.random.SeedSequence(numbers).generate_state(1, np.uint64)[0])


def seed_torch(seed: int) -> None:
    """Seed torch; unlike ``torch.manual_seed``, spend no time on devices that are not in use."""
    torch.default_generator.manual_seed(seed)
    if torch.cuda.is_initialized():
        torch.cuda.manual_seed_all(seed)


def training_loader(data: Data, recipe: Recipe, seed: int) -> DataLoader[Any]:
    """Return the loader of training batches; each batch is read with one slice of the split."""
    return DataLoader(
        _TrainingBatches(data.train, data.augment if recipe.augment else None, seed),
        sampler=_ShuffledBatches(len(data.train), recipe.batch, seed),
        batch_size=None,
        num_workers=loading_processes(data.train),
    )


class _ShuffledBatches(Sampler[Key]):
    """The images of an epoch in a new order, cut into batches of even size."""

    def __init__(self, images: int, batch: int, seed: int) -> None:
        self.images = images
        self.batches = math.ceil(images / batch)
        self.seed = seed
        self.epoch = 0

    def set_epoch(self, epoch: int) -> None:
        """Set the number of the epoch; Lightning calls this before each epoch."""
        self.epoch = epoch

    def __len__(self) -> int:
        return self.batches

    def __iter__(self) -> Iterator[Key]:
        order = np.random.default_rng((self.seed, self.epoch)).permutation(self.images)
        # Even sizes: a last batch of one image would leave batch norm nothing to average.
        for number, indices in enumerate(np.array_split(order, self.batches)):
            yield self.epoch, number, indices.tolist()


class _TrainingBatches(Dataset[tuple[torch.Tensor, torch.Tensor]]):
    """Training batches; their augmentation follows from their key, whichever process reads them."""

    def __init__(self, split: Split, augment: Callable[[Any], Any] | None, seed: int) -> None:
        self.split = split
        self.augment = augment
        self.seed = seed

    def __getitem__(self, key: Key) -> tuple[torch.Tensor, torch.Tensor]:
        epoch, number, indices = key
        with torch.random.fork_rng(devices=[]):
            seed_torch(derive_seed(self.seed, epoch, number, 0))
            images, labels = (torch.from_numpy(part) for part in self.split[indices])
            return (self.augment(images) if self.augment else images), labels
