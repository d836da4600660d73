"""Networks without training: stored without the weights that follow from their seed, restored bit for bit."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
import torch

from dlas.axes.compression.compact_channel_pruning import CompactChannelPruning
from dlas.axes.compression.pruning.masks import Scope
from dlas.axes.models.cifar_mobilenet_v1 import CifarMobilenetV1
from dlas.bench.store.cache import Cache
from dlas.errors import CorruptArtifact
from dlas.networks.origins import KEPT_FILE, ORIGIN_FILE
from dlas.networks.torch.model import TorchModel
from dlas.networks.torch.network import TorchNetwork, conv_weights
from dlas.networks.weights import WEIGHTS_FILE, read_weights
from dlas.stack import Facts, Network
from dlas.sweep.engine.planning import Step
from dlas.sweep.engine.steps.artifacts import restore_network
from dlas.testing.networks import TinyModel, noise, random_images
from tests.fixtures.tiny import NOISE, make_network, network_steps, the_point, workspace

MODEL = CifarMobilenetV1(width=0.25, recipe="none")
DATA = noise((3, 16, 16), 10)
UNTRAINED = NOISE + '\nmodel = [{ name = "tests.fixtures.tiny:TinyModel", recipe = "none" }]'


@pytest.fixture(scope="module")
def untrained(tmp_path_factory: pytest.TempPathFactory) -> tuple[TorchNetwork, Path]:
    """Return an untrained network and the folder where it is saved."""
    folder = tmp_path_factory.mktemp("untrained")
    network = MODEL.build(DATA, workspace(folder, seed=3))
    assert isinstance(network, TorchNetwork)
    network.save(folder)
    return network, folder


def saved_bytes(folder: Path) -> int:
    return sum(
        (folder / name).stat().st_size for name in (WEIGHTS_FILE, KEPT_FILE) if (folder / name).exists()
    )


def assert_same(restored: Network, network: TorchNetwork) -> None:
    assert isinstance(restored, TorchNetwork)
    states = [each.module.state_dict() for each in (restored, network)]
    assert states[0].keys() == states[1].keys()
    assert all(torch.equal(states[0][name], states[1][name]) for name in states[0])
    images = random_images(2, network.facts.shape)
    np.testing.assert_array_equal(restored.reference(images), network.reference(images))


def test_an_untrained_network_is_stored_without_its_weights(untrained: tuple[TorchNetwork, Path]) -> None:
    network, folder = untrained
    told = json.loads((folder / ORIGIN_FILE).read_text())
    assert told["made_again"] == "constructed with seed 3" and "0.weight" in told["left_out"]
    stored = read_weights(folder / WEIGHTS_FILE)
    assert {name.rpartition(".")[2] for name in stored} <= {
        "running_mean",
        "running_var",
        "num_batches_tracked",
    }
    assert saved_bytes(folder) < (network.facts.model_bytes or 0) / 5
    assert_same(MODEL.restore(folder, network.facts), network)


@pytest.mark.parametrize("scope", ["layer", "global"])
def test_a_network_that_lost_channels_is_stored_as_what_is_left(
    untrained: tuple[TorchNetwork, Path], tmp_path: Path, scope: Scope
) -> None:
    dense, folder = untrained
    restored: Network = MODEL.restore(folder, Facts(dense.facts.shape, dense.facts.classes))
    for number, level in enumerate((0.3, 0.6)):  # the second prunes what the first has left
        part = CompactChannelPruning(level=level, criterion="random", scope=scope, recipe="none")
        smaller = part.compress(restored, DATA, workspace(tmp_path / f"work{number}"))
        assert isinstance(smaller, TorchNetwork)
        saved = tmp_path / str(number)
        saved.mkdir()
        smaller.save(saved)
        assert not any(name.endswith("weight") for name in read_weights(saved / WEIGHTS_FILE))
        assert KEPT_FILE in json.loads((saved / ORIGIN_FILE).read_text())["made_again"]
        restored = part.restore(MODEL, saved, smaller.facts)
        assert_same(restored, smaller)


def test_weights_that_do_not_follow_from_the_seed_are_stored(tmp_path: Path) -> None:
    network = TinyModel(recipe="none").build(noise(), workspace(tmp_path))
    assert isinstance(network, TorchNetwork)
    with torch.no_grad():
        conv_weights(network.module)["pointwise"][0] = -0.0  # equal to no constructed weight
    network.save(tmp_path)
    assert "pointwise.weight" in read_weights(tmp_path / WEIGHTS_FILE)
    assert_same(TinyModel().restore(tmp_path, network.facts), network)
    network.origin = None
    (tmp_path / "whole").mkdir()
    network.save(tmp_path / "whole")
    assert read_weights(tmp_path / "whole" / WEIGHTS_FILE).keys() == network.module.state_dict().keys()


def test_weights_that_come_out_otherwise_are_made_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    point = the_point(UNTRAINED)
    (artifact,) = make_network(point, tmp_path)
    assert (artifact.folder / ORIGIN_FILE).exists()
    (step,) = network_steps(point, tmp_path)
    assert isinstance(step, Step) and isinstance(restore_network(Cache(tmp_path), step.key, point), Network)
    construct = TorchModel.construct
    monkeypatch.setattr(TorchModel, "construct", lambda part, facts, seed: construct(part, facts, seed + 1))
    with pytest.raises(CorruptArtifact, match="the weights of seed 0 are others here"):
        restore_network(Cache(tmp_path), step.key, point)
    assert Cache(tmp_path).get("network", step.key) is None
    make_network(point, tmp_path)
    assert isinstance(restore_network(Cache(tmp_path), step.key, point), Network)
