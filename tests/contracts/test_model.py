"""Models keep their contract, and the contract notices what does not."""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
import torch
from torch import nn

from dlas.networks.exporting import as_onnx
from dlas.networks.torch.network import TorchNetwork
from dlas.stack import Data, Facts, Images, Network, Outputs, Workspace
from dlas.sweep.study import parts
from dlas.testing import check_model
from dlas.testing.networks import Tiny, TinyDataset, TinyModel, noise, tiny_network

OWN = [name for name in parts.names("model") if name.startswith("cifar_")]


@pytest.mark.parametrize("name", [*OWN, "squeezenet1_1"])
def test_model_keeps_its_contract(name: str) -> None:
    options, size = ({"width": 0.125}, 32 if "vgg" in name else 16) if name in OWN else ({}, 32)
    check_model(parts.make("model", name, options), noise((3, size, size), 10))


def test_an_onnx_file_keeps_the_contract_of_a_model(tmp_path: Path) -> None:
    onnx.save(as_onnx(tiny_network(), None), tmp_path / "tiny.onnx")
    check_model(parts.make("model", "onnx", {"path": str(tmp_path / "tiny.onnx")}), noise())


def test_a_trained_model_keeps_its_contract() -> None:
    check_model(TinyModel(epochs=1), TinyDataset().load())


CALLS = itertools.count(1)


@dataclass(frozen=True)
class Drifts(TinyModel):
    """Makes another network at every call."""

    def module(self, shape: tuple[int, int, int], classes: int) -> nn.Module:
        torch.manual_seed(next(CALLS))
        return Tiny(shape[0], classes)


@dataclass(frozen=True)
class Forgets(TinyModel):
    """Restores a network with random weights."""

    def restore(self, folder: Path, facts: Facts) -> Network:
        return self.construct(facts, seed=1)


@dataclass(frozen=True)
class Uncounted(TinyModel):
    """Does not count its network."""

    def build(self, data: Data, workspace: Workspace) -> Network:
        network = super().build(data, workspace)
        network.facts.parameters = None
        return network


@dataclass(frozen=True)
class Claims(TinyModel):
    """Has an accuracy on images without labels."""

    def build(self, data: Data, workspace: Workspace) -> Network:
        network = super().build(data, workspace)
        network.facts.accuracy = 0.9
        return network


class Relative(TorchNetwork):
    """Divides its outputs by the largest of the batch."""

    def reference(self, images: Images) -> Outputs:
        outputs = super().reference(images)
        return np.asarray(outputs / np.abs(outputs).max())


class Double(TorchNetwork):
    """Computes in double precision."""

    def reference(self, images: Images) -> Any:
        return super().reference(images).astype(np.float64)


class Constant(TorchNetwork):
    """Sees nothing."""

    def reference(self, images: Images) -> Outputs:
        return super().reference(np.zeros_like(images))


@dataclass(frozen=True)
class Wraps(TinyModel):
    """Makes networks of a class of its own."""

    kind: type[TorchNetwork] = TorchNetwork

    def construct(self, facts: Facts, seed: int) -> TorchNetwork:
        return self.kind(super().construct(facts, seed).module, facts)


@pytest.mark.parametrize(
    ("wrong", "complaint"),
    [
        (Drifts(), "one seed gives two networks"),
        (Forgets(), "computes something else than the saved one"),
        (Uncounted(), "parameters is None: networks are counted"),
        (Claims(), "accuracy of a network without labels or training is 0.9"),
        (Wraps(kind=Relative), "change by .* with the images beside it"),
        (Wraps(kind=Double), "outputs are float64, not float32"),
        (Wraps(kind=Constant), "the same for every image"),
    ],
)
def test_a_broken_contract_is_noticed(wrong: TinyModel, complaint: str) -> None:
    with pytest.raises(AssertionError, match=complaint):
        check_model(wrong, noise())
