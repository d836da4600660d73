"""The contract of data sets: three disjoint splits of images and labels, the same at every load."""

from __future__ import annotations

import numpy as np
import torch

from dlas.stack import Data, Dataset, Images, Labels, Split
from dlas.testing.faults import checking

IMAGES = 256
"""Largest number of images to check in each split, spread over a larger split."""
READ_AT_ONCE = 4


def check_dataset(dataset: Dataset, images: int = IMAGES) -> None:
    """Check the contract of a data set.

    - Images are finite float32 [n, c, h, w] of the shape that the data gives, labels
      int64 [n] below its number of classes.
    - Every load gives the same images; random changes of training images (a crop,
      for example) follow from torch's seed.
    - An image of the other splits does not depend on the images read with it.
    - Splits are disjoint.
    - Augmenting keeps shape and type.

    Parameters
    ----------
    images : int
        Images of each split to check.

    Raises
    ------
    AssertionError
    """
    with checking(dataset):
        data, again = dataset.load(), dataset.load()
        _check_description(dataset, data)
        splits = {"train": data.train, "validation": data.validation, "test": data.test}
        others = {"train": again.train, "validation": again.validation, "test": again.test}
        digests: dict[bytes, str] = {}
        for name, split in splits.items():
            places = _places(split, images)
            read = _check_split(name, split, places, data)
            assert _same(read, _read(others[name], places)), f"two loads give two {name} splits"
            for image in read[0]:
                other = digests.setdefault(image.tobytes(), name)
                assert other == name, f"an image of the {name} split is in the {other} split, too"
        _check_augment(data)


def _check_description(dataset: Dataset, data: Data) -> None:
    """Check shape, classes and ``labelled``."""
    assert len(data.shape) == 3 and all(size >= 1 for size in data.shape), f"{data.shape} is no (c, h, w)"
    assert data.classes >= 1, f"it has {data.classes} classes"
    same = dataset.labelled == data.labelled
    assert same, f"the part says labelled = {dataset.labelled}, its data {data.labelled}"


def _places(split: Split, images: int) -> list[int]:
    """Return indices spread over a split."""
    assert len(split) > 0, "a split is empty"
    return sorted({round(place) for place in np.linspace(0, len(split) - 1, min(images, len(split)))})


def _check_split(name: str, split: Split, places: list[int], data: Data) -> tuple[Images, Labels]:
    """Check some images and labels of a split, and return them."""
    images, labels = _read(split, places)
    shape = (len(places), *data.shape)
    assert images.shape == shape, f"{name} images have shape {images.shape}, not {shape}"
    assert images.dtype == np.float32, f"{name} images are {images.dtype}, not float32"
    assert np.isfinite(images).all(), f"{name} images hold numbers that are not finite"
    assert labels.shape == (len(places),), f"{name} labels have shape {labels.shape}, not {(len(places),)}"
    assert labels.dtype == np.int64, f"{name} labels are {labels.dtype}, not int64"
    low, high = int(labels.min()), int(labels.max())
    assert low >= 0 and high < data.classes, f"{name} labels {low} to {high} of {data.classes} classes"
    if split is not data.train:
        order = list(reversed(range(len(places))))[:READ_AT_ONCE]
        few = _read(split, [places[place] for place in order])
        apart = _same((images[order], labels[order]), few)
        assert apart, f"{name} images change with what they are read together with"
    return images, labels


def _read(split: Split, places: list[int]) -> tuple[Images, Labels]:
    """Return some images and labels of a split, read with a fixed seed."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        return split[places]


def _same(first: tuple[Images, Labels], second: tuple[Images, Labels]) -> bool:
    return np.array_equal(first[0], second[0]) and np.array_equal(first[1], second[1])


def _check_augment(data: Data) -> None:
    """Check that an augmented batch is a batch of the same shape and type."""
    if data.augment is None:
        return
    images = torch.from_numpy(data.train[[0]][0])
    augmented = data.augment(images)
    same = augmented.shape == images.shape and augmented.dtype == images.dtype
    assert same, f"augmenting makes {augmented.dtype} {list(augmented.shape)} of {list(images.shape)}"
