"""Subnetworks are taken out of a network that holds all of them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch

import dlas
from dlas.axes.compression.subnet import Subnet
from dlas.errors import InputError, Unsupported
from dlas.networks.subnets.flexible import LARGEST, SMALLEST, SharedWeights
from dlas.networks.subnets.written import EXAMPLE
from dlas.sweep.rows.results import COMPLETED
from dlas.testing.networks import noise, tiny_network, workspace


@pytest.fixture
def flexible() -> SharedWeights:
    torch.manual_seed(0)
    made = SharedWeights(3, 10)
    images = torch.randn(8, 3, 32, 32)
    with torch.no_grad():
        made.train()(images)
    return made.eval()


def test_a_step_trains_four_subnetworks(flexible: SharedWeights) -> None:
    images = torch.randn(6, 3, 32, 32)
    torch.manual_seed(1)
    flexible.train()
    before = {name: value.clone() for name, value in flexible.named_buffers()}
    outputs = flexible(images)
    assert outputs.shape == (24, 10)
    torch.manual_seed(1)
    assert torch.equal(flexible(images)[12:], outputs[12:]), "the seed decides which are drawn"
    outputs.sum().backward()
    assert all(value.grad is not None for value in flexible.parameters())
    changed = [name for name, value in flexible.named_buffers() if not torch.equal(value, before[name])]
    assert len(changed) == len(before), "the largest one's statistics follow the images"
    assert flexible.eval()(images).shape == (6, 10)


def test_a_subnetwork_has_the_middle_of_kernels_and_the_first_channels(flexible: SharedWeights) -> None:
    images = torch.randn(4, 3, 32, 32)
    assert torch.equal(flexible.extracted(LARGEST)(images), flexible(images))
    small, whole = (
        dict(module.named_modules()) for module in (flexible.extracted(SMALLEST), flexible.largest)
    )
    for at, source in ((0, 0), (1, 1), (2, 4), (9, 17)):
        own, other = small[f"block{at}.body.depthwise"].weight, whole[f"block{source}.body.depthwise"].weight
        assert torch.equal(own, other[: len(own), :, 2:5, 2:5]), at
    own, other = small["block3.body.gate"].squeeze.weight, whole["block5.body.gate"].squeeze.weight
    assert torch.equal(own, other[: own.shape[0], : own.shape[1]])
    assert torch.equal(small["classes"].weight, whole["classes"].weight)


def test_other_networks_hold_none(tmp_path: Path) -> None:
    with pytest.raises(Unsupported, match="only the model 'supernet'"):
        Subnet(EXAMPLE).compress(tiny_network(), noise(), workspace(tmp_path / "work"))


def test_bad_subnetworks_are_refused() -> None:
    axes: dict[str, Any] = {"model": "supernet", "compiler": "onnxruntime"}
    with pytest.raises(InputError, match=r"option subnet = '33:33'.*has 1 stages"):
        dlas.Study(axes={**axes, "compression": {"name": "subnet", "subnet": "33:33"}})
    with pytest.raises(InputError, match="leave it out"):
        Subnet(EXAMPLE, "compofa_fixed").verify()


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_a_search_runs_on_true_accuracies(tmp_path: Path) -> None:
    study = {
        "name": "supernet",
        "axes": {
            "dataset": "digits",
            "model": {"name": "supernet", "epochs": 6},
            "compression": {"name": "subnet", "subnet": "drawn"},
            "compiler": "onnxruntime",
            "hardware": {"name": "local_cpu", "threads": 1},
        },
        "sample": {"points": 4, "axes": ["compression"]},
        "measure": {"repeats": 5, "seconds": 0.1, "layer_repeats": 0},
    }
    rows = dlas.run(study, tmp_path / "rows", cache=tmp_path / "cache", progress="silent")
    assert rows["status"].isin(COMPLETED).all() and rows["accuracy"].min() > 0.3  # guesses: 0.1
    assert rows["accuracy"].nunique() > 1 and rows["macs"].nunique() == 4
    view = dlas.search(
        study,
        tmp_path / "out",
        estimator="measure",
        maximise="accuracy",
        within={"latency_s": float(rows["latency_s"].max()) * 2},
        population=4,
        generations=1,
        winners=2,
        cache=tmp_path / "cache",
        progress="silent",
    )
    assert view.frame["score"].min() > 0.3 and view.frame["latency_s_measured"].notna().all()
