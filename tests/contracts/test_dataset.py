"""Every data set there is keeps its contract, and the contract notices what does not."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dlas.stack import Arrays, Data, Dataset
from dlas.sweep.study import parts
from dlas.testing import check_dataset
from dlas.testing.networks import TinyDataset

OUTSIDE = {"cifar10": "cifar_root", "fashion_mnist": "fashion_root", "imagenet": "imagenet_root"}
"""Data sets that read files, and the fixture that writes a few."""


@pytest.mark.parametrize("name", parts.names("dataset"))
def test_data_set_keeps_its_contract(name: str, request: pytest.FixtureRequest) -> None:
    options: dict[str, Any] = {}
    if name in OUTSIDE:
        options["root"] = str(request.getfixturevalue(OUTSIDE[name]))
    check_dataset(parts.make("dataset", name, options), images=64)


@dataclass(frozen=True)
class Changed(Dataset):
    """The tiny data set after a change."""

    change: Callable[[Data], Data]

    def load(self) -> Data:
        return self.change(TinyDataset().load())


def mapped(data: Data, **changes: Any) -> Data:
    """Return the data with what is given instead of the training images or labels."""
    assert isinstance(data.train, Arrays)
    return replace(data, train=replace(data.train, **changes))


class Normalised(Arrays):
    """Images less the mean of what is read together."""

    def __getitem__(self, indices: Any) -> Any:
        images, labels = super().__getitem__(indices)
        return images - images.mean(), labels


def arrays(data: Data) -> Arrays:
    assert isinstance(data.train, Arrays)
    return data.train


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        (lambda data: replace(data, validation=data.train), "image of the validation split is in the train"),
        (lambda data: replace(data, test=Arrays(*data.train[range(4)])), "image of the test split is in the"),
        (lambda data: replace(data, classes=3), "labels 0 to 3 of 3 classes"),
        (lambda data: replace(data, shape=(3, 8, 9)), r"shape \(96, 3, 8, 8\), not \(96, 3, 8, 9\)"),
        (lambda data: mapped(data, images=arrays(data).images.astype(np.float64)), "float64, not float32"),
        (lambda data: mapped(data, labels=arrays(data).labels.astype(np.int32)), "int32, not int64"),
        (lambda data: mapped(data, images=arrays(data).images * np.float32("inf")), "not finite"),
        (lambda data: replace(data, train=Arrays(*data.train[[]])), "a split is empty"),
        (lambda data: replace(data, labelled=False), "labelled = True, its data False"),
        (
            lambda data: replace(data, test=Normalised(*data.test[range(len(data.test))])),
            "change with what they are read together with",
        ),
        (
            lambda data: mapped(data, images=np.random.default_rng().permutation(arrays(data).images)),
            "two loads give two train splits",
        ),
        (lambda data: replace(data, augment=lambda images: images[:, :1]), "augmenting makes"),
    ],
)
def test_a_broken_contract_is_noticed(change: Callable[[Data], Data], complaint: str) -> None:
    with pytest.raises(AssertionError, match=f"Changed: .*{complaint}"):
        check_dataset(Changed(change))


def test_a_part_that_raises_is_named_with_the_line() -> None:
    def fail(data: Data) -> Data:
        raise KeyError("no such file")

    with pytest.raises(AssertionError, match=rf"Changed: KeyError.*{Path(__file__).name}:\d+, in fail"):
        check_dataset(Changed(fail))
