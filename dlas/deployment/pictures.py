"""What a deployed network's user has to know of the data set: how images are prepared, the classes' names."""

# Here and not in the data sets: a change of their code would train every network again.
from __future__ import annotations

import inspect
import re
from dataclasses import dataclass
from pathlib import Path

from dlas.axes.datasets import cifar10, fashion_mnist, imagenet
from dlas.axes.datasets.cifar10 import Cifar10
from dlas.axes.datasets.digits import Digits
from dlas.axes.datasets.fashion_mnist import INSTALLED, FashionMnist
from dlas.axes.datasets.imagenet import Imagenet
from dlas.axes.datasets.random import Random
from dlas.errors import MissingData
from dlas.stack import Dataset

CIFAR10 = ("airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck")
FASHION = (
    "T-shirt/top",
    "trouser",
    "pullover",
    "dress",
    "coat",
    "sandal",
    "shirt",
    "sneaker",
    "bag",
    "ankle boot",
)
DIGITS_MEAN, DIGITS_DEVIATION = 0.3062, 0.3238
"""Of the training images, as the data set's page tells them."""
SECTION = re.compile(r"\n\n\w+\n---.*", re.DOTALL)
"""The sections of a docstring, such as its parameters."""


def preparation(dataset: Dataset) -> str:
    """Return what a data set's docstring says of its images, without parameters and references."""
    cls = type(dataset)
    text = inspect.cleandoc(cls.__doc__ or "")
    if not text or text.startswith(
        f"{cls.__name__}("
    ):  # a dataclass without a docstring has one made of fields
        return f"As the data set `{cls.__module__}:{cls.__name__}` prepares them."
    return SECTION.sub("", text).replace("``", "`")


def labels(name: str, dataset: Dataset, classes: int) -> list[str]:
    """Return the names of the classes in the order of a network's outputs; numbers where they have none.

    Parameters
    ----------
    name : str
        The data set's.
    """
    names = _folder_names(dataset) if name == "imagenet" else {}
    if name == "cifar10":
        names = dict(enumerate(CIFAR10))
    if isinstance(dataset, FashionMnist) and dataset.root == INSTALLED:  # elsewhere may be MNIST's digits
        names = dict(enumerate(FASHION))
    return [names.get(number, str(number)) for number in range(classes)]


def _folder_names(dataset: Dataset) -> dict[int, str]:
    """Return the folder of each class, where images lie in one for each."""
    from dlas.axes.datasets.imagenet import Files

    try:
        images = dataset.load().test
    except MissingData:
        return {}
    assert isinstance(images, Files)
    pairs = zip(images.labels.tolist(), images.paths.tolist(), strict=True)
    return {label: Path(path).parent.name for label, path in pairs}


@dataclass(frozen=True)
class Preparation:
    """How a picture with levels from 0 to 1 becomes a network's input."""

    mean: tuple[float, ...]
    """What is subtracted, by channel."""
    deviation: tuple[float, ...]
    """What it is divided by then."""
    grey: bool = False
    """Whether it is a grey level, on a black background, in all channels."""
    border: int = 0
    """Black pixels on each side."""


def numbers(dataset: Dataset, channels: int) -> Preparation | None:
    """Return how a data set prepares pictures, None where that is not known here.

    Networks on random numbers are shown with ImageNet's preparation.
    """
    if isinstance(dataset, FashionMnist):
        mean, deviation = float(fashion_mnist.MEAN), float(fashion_mnist.DEVIATION)
        return Preparation(
            (mean,) * channels, (deviation,) * channels, grey=True, border=fashion_mnist.BORDER
        )
    if isinstance(dataset, Digits):
        return Preparation((DIGITS_MEAN,) * channels, (DIGITS_DEVIATION,) * channels, grey=True)
    if isinstance(dataset, Cifar10):
        return Preparation(tuple(cifar10.MEAN.ravel().tolist()), tuple(cifar10.DEVIATION.ravel().tolist()))
    if channels == 3 and isinstance(dataset, Imagenet | Random):
        return Preparation(imagenet.MEAN, imagenet.DEVIATION)
    return None
