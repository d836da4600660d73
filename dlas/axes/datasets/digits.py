"""Handwritten digits from scikit-learn: a data set that needs no download."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Annotated

import numpy as np
import numpy.typing as npt
import torch
from pydantic import Field
from torch.nn import functional

from dlas.stack import Arrays, Data, Dataset, Images

SIZE = 32
TEST_SHARE = 0.25
VALIDATION_SHARE = 0.2
"""Share of the images that are left after taking out the test images."""
SPLIT_SEED = 0
"""Part of the data set's definition, not of a study: every study reports the same test images."""
NOISE_SEED = 0
"""Part of the definition, like the split."""

LARGEST_ROTATION = math.radians(10.0)
LARGEST_SCALING = 0.1
LARGEST_SHIFT = 0.1
"""In units of half an image, as in torch.nn.functional.affine_grid."""


@dataclass(frozen=True)
class Digits(Dataset):
    """1,797 real handwritten digits, 8x8 grey levels shown as 3x32x32.

    Grey levels from 0 to 1 are enlarged bilinearly, repeated in three channels, less
    the mean 0.3062 and divided by the deviation 0.3238 of the training images, and split in a fixed way
    (stratified by class) into 1,077 to train, 270 to validate and 450 to test.

    References
    ----------
    E. Alpaydin and C. Kaynak, "Optical Recognition of Handwritten Digits", UCI
    Machine Learning Repository, 1998, https://doi.org/10.24432/C50P49.
    """

    noise: Annotated[float, Field(ge=0, allow_inf_nan=False)] = 0.0
    """Standard deviation of Gaussian noise that is added to each of the 8x8 grey levels, always the same:
    without it nearly every network is right about nearly every digit, and none can be told from another.
    """

    def imports(self) -> list[str]:
        """Return what :meth:`load` imports."""
        return ["sklearn.datasets", "sklearn.model_selection"]

    def load(self) -> Data:
        """Read the digits from the installed scikit-learn; nothing is downloaded."""
        from sklearn.datasets import load_digits  # here, because importing it takes seconds
        from sklearn.model_selection import train_test_split

        pixels, labels = load_digits(return_X_y=True)
        grey = pixels.reshape(-1, 8, 8) / 16.0
        order = np.arange(len(labels))
        rest, test = train_test_split(order, test_size=TEST_SHARE, stratify=labels, random_state=SPLIT_SEED)
        train, validation = train_test_split(
            rest, test_size=VALIDATION_SHARE, stratify=labels[rest], random_state=SPLIT_SEED
        )
        clean = _enlarge(grey[train])
        added = self.noise * np.random.default_rng(NOISE_SEED).standard_normal(grey.shape)
        images = (_enlarge(grey + added) - clean.mean()) / clean.std()
        labels = labels.astype(np.int64)
        return Data(
            Arrays(images[train], labels[train]),
            Arrays(images[validation], labels[validation]),
            Arrays(images[test], labels[test]),
            shape=(3, SIZE, SIZE),
            classes=10,
            augment=random_affine,
            recipe="short",
        )


def _enlarge(grey: npt.NDArray[np.float64]) -> Images:
    """Return 8x8 images [n, 8, 8] as [n, 3, 32, 32]."""
    small = torch.from_numpy(grey.astype(np.float32))[:, None]
    large = functional.interpolate(small, size=(SIZE, SIZE), mode="bilinear", align_corners=False)
    return np.repeat(large.numpy(), 3, axis=1)


def random_affine(images: torch.Tensor) -> torch.Tensor:
    """Rotate, scale and shift each digit a little; digits are never mirrored.

    Parameters
    ----------
    images : Tensor, [n, c, h, w]

    Returns
    -------
    Tensor, [n, c, h, w]
        Drawn with torch's default generator.
    """
    rotation, scaling, down, right = (2 * torch.rand(4, len(images)) - 1).unbind()
    rotation, scaling = LARGEST_ROTATION * rotation, 1 + LARGEST_SCALING * scaling
    cos, sin = scaling * rotation.cos(), scaling * rotation.sin()
    maps = torch.stack(
        [torch.stack([cos, -sin, LARGEST_SHIFT * right]), torch.stack([sin, cos, LARGEST_SHIFT * down])]
    ).permute(2, 0, 1)
    grid = functional.affine_grid(maps, list(images.shape), align_corners=False)
    # The border of a digit is its background, which normalising has moved away from zero.
    return functional.grid_sample(images, grid, padding_mode="border", align_corners=False)
