"""What a deployed network's user has to know of the data set: how images are prepared, the classes' names."""

# Here and not in the data sets: a change of their code would train every network again.
from __future__ import annotations

import inspect
import re
from pathlib import Path

from dlas.axes.datasets.fashion_mnist import INSTALLED, FashionMnist
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
