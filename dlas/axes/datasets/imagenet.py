"""ImageNet, or data with the same layout: a folder for each class."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

import numpy as np
import numpy.typing as npt
import torch
from PIL import Image
from pydantic import Field
from torchvision import transforms

from dlas.axes.datasets.pixels.splits import hold_out
from dlas.axes.datasets.scenes.subsets import CLASSES, Subset, places
from dlas.errors import InputError, MissingData
from dlas.stack import Data, Dataset, Images, Labels

MEAN = (0.485, 0.456, 0.406)
DEVIATION = (0.229, 0.224, 0.225)
SUFFIXES = (".jpeg", ".jpg", ".png")
FORMATS = ("JPEG", "PNG")
"""One of ImageNet's files is a PNG with the suffix JPEG."""
MOST_HELD_OUT = 10_000


@dataclass(frozen=True)
class Imagenet(Dataset):
    """ImageNet in torchvision's layout: ``root/train/<class>/*.JPEG`` and ``root/val/<class>/*.JPEG``.

    ``val``, on which the literature reports results, is the test split here.
    Validation images are a tenth of ``train``, at most 10,000, drawn once with a
    fixed seed and never trained on.  Images are decoded when they are read: for
    evaluation the shorter side is resized to ``size`` x 8 / 7 (256 for 224) and the
    centre cropped; for training a random window is resized and mirrored at random,
    drawn with torch's default generator.  Pixels are RGB from 0 to 1, less the mean
    (0.485, 0.456, 0.406) and divided by the deviation (0.229, 0.224, 0.225) of each channel.

    References
    ----------
    O. Russakovsky et al., "ImageNet Large Scale Visual Recognition Challenge",
    IJCV 115, 2015, https://doi.org/10.1007/s11263-015-0816-y.
    """

    root: str
    """The folder that holds ``train`` and ``val``."""
    size: Annotated[int, Field(ge=32, le=1024)] = 224
    """Height and width of a network's input."""
    subset: Literal["all"] | Subset = "all"
    """Classes that an autonomous vehicle meets there, 185, 26, 204 or 26 of 1,000 (perf4sight, D); the
    network has as many outputs.
    """

    def verify(self) -> None:
        """Look for the class folders, and for all of ImageNet's where a subset is asked for."""
        for split in ("train", "val"):
            self._classes(Path(self.root).expanduser().absolute() / split)
        self._chosen(self._classes(Path(self.root).expanduser().absolute() / "train"))

    def load(self) -> Data:
        """List the images; none is read yet.

        Raises
        ------
        MissingData
            If ``train`` or ``val`` is not there or holds no images.
        InputError
            If ``val`` has a class that ``train`` has not.
        """
        root = Path(self.root).expanduser().absolute()
        classes = self._chosen(self._classes(root / "train"))
        paths, labels = self._list(root / "train", classes)
        test_paths, test_labels = self._list(root / "val", classes)
        drawn, validation = hold_out(len(paths), MOST_HELD_OUT)
        train = np.sort(drawn)
        evaluation, training = _evaluation_transform(self.size), _training_transform(self.size)
        return Data(
            Files(paths[train], labels[train], training),
            Files(paths[validation], labels[validation], evaluation),
            Files(test_paths, test_labels, evaluation),
            shape=(3, self.size, self.size),
            classes=len(classes),
            recipe="paper",
            fine_tuning="imagenet",
        )

    def _classes(self, folder: Path) -> list[str]:
        """Return the sorted class names; the error says what is missing and how to get it."""
        names = sorted(entry.name for entry in folder.iterdir() if entry.is_dir()) if folder.is_dir() else []
        if not names:
            raise MissingData(
                f"imagenet with root {self.root!r}: no class folders in {folder}. Expected "
                f"{folder}/<class>/*.JPEG and {folder.parent / 'val'}/<class>/*.JPEG. ImageNet is given out "
                "at https://www.image-net.org to those who register; torchvision.datasets.ImageNet unpacks "
                "its archives into this layout"
            )
        return names

    def _chosen(self, classes: list[str]) -> list[str]:
        """Return the classes of the subset.

        Raises
        ------
        InputError
            If not all of ImageNet's classes are there.
        """
        if self.subset == "all":
            return classes
        if len(classes) != CLASSES:
            raise InputError(
                f"imagenet with root {self.root!r}: subset = {self.subset!r} chooses among ImageNet's "
                f"{CLASSES:,} classes, and {len(classes):,} are there"
            )
        return [classes[place] for place in places(self.subset)]

    def _list(self, folder: Path, classes: list[str]) -> tuple[npt.NDArray[np.str_], Labels]:
        """Return the paths of the images in ``folder``, and the index of each image's class."""
        number = {name: index for index, name in enumerate(classes)}
        paths, labels = [], []
        for name in self._classes(folder):
            if name not in number and self.subset != "all":
                continue
            if name not in number:
                raise InputError(f"{folder / name}: there is no class {name!r} in {folder.parent / 'train'}")
            files = sorted(str(file) for file in (folder / name).iterdir() if file.suffix.lower() in SUFFIXES)
            paths += files
            labels += [number[name]] * len(files)
        if not paths:
            raise MissingData(
                f"imagenet with root {self.root!r}: no {', '.join(SUFFIXES)} files in the folders of {folder}"
            )
        return np.array(paths), np.array(labels, np.int64)


@dataclass(frozen=True)
class Files:
    """A split of image files."""

    paths: npt.NDArray[np.str_]
    """Str [n]."""
    labels: Labels
    """Int64 [n]."""
    transform: Any
    """Maps a PIL image to a tensor [3, h, w]."""

    decodes = True
    """Reading takes processor time, so loaders use worker processes."""

    def __len__(self) -> int:
        return len(self.labels)

    def __getitem__(self, indices: Sequence[int]) -> tuple[Images, Labels]:
        images = torch.stack([self.transform(read_image(str(path))) for path in self.paths[indices]])
        return images.numpy(), self.labels[indices]


def read_image(path: str) -> Image.Image:
    """Return the file's image as RGB.

    Raises
    ------
    InputError
        If it cannot be decoded; the message names the file.
    """
    try:
        with Image.open(path, formats=FORMATS) as image:
            return image.convert("RGB")
    except Exception as error:  # decoders raise their own errors on damaged files
        raise InputError(f"image {path} cannot be read: {error}") from error


def _evaluation_transform(size: int) -> Any:
    """Return the transform of evaluation."""
    larger = round(size * 256 / 224)
    cut = [transforms.Resize(larger), transforms.CenterCrop(size)]
    return transforms.Compose([*cut, transforms.ToTensor(), transforms.Normalize(MEAN, DEVIATION)])


def _training_transform(size: int) -> Any:
    """Return the transform of training."""
    cut = [transforms.RandomResizedCrop(size), transforms.RandomHorizontalFlip()]
    return transforms.Compose([*cut, transforms.ToTensor(), transforms.Normalize(MEAN, DEVIATION)])
