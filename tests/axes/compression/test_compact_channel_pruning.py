"""compact_channel_pruning: channels that are gone, and networks that come back as they were saved."""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file
from torch import nn

from dlas.axes.compression.channel_pruning import ChannelPruning
from dlas.axes.compression.compact_channel_pruning import CompactChannelPruning
from dlas.axes.compression.weight_pruning import WeightPruning
from dlas.axes.models.onnx import Onnx
from dlas.errors import InputError, Unsupported
from dlas.networks.torch.model import TorchModel
from dlas.networks.torch.network import TorchNetwork, conv_weights
from dlas.networks.weights import WEIGHTS_FILE
from dlas.stack import Arrays, Data, Workspace
from dlas.sweep.study import parts
from dlas.sweep.study.chain import Chain
from tests.fixtures.small_network import CLASSES, SHAPE, Small, error, images, network

NORMED = {"stem.0": "stem.1", "first": "first_norm"}
"""The convolutions of the small network that have no bias, and the batch norms behind them."""


@dataclass(frozen=True)
class SmallModel(TorchModel):
    """The small network as a model part."""

    def module(self, shape: tuple[int, int, int], classes: int) -> nn.Module:
        """Return the network with random weights."""
        return Small()


def labelled(count: int = 64) -> Data:
    split = Arrays(images(count), np.arange(count, dtype=np.int64) % CLASSES)
    return Data(split, split, split, SHAPE, CLASSES)


def compact(given: TorchNetwork, workspace: Workspace, level: float = 0.5, **options: Any) -> TorchNetwork:
    """Return a smaller copy of a network; ``given`` stays as it is."""
    part = CompactChannelPruning(level=level, **options)
    smaller = part.compress(copy.deepcopy(given), labelled(), workspace)
    assert isinstance(smaller, TorchNetwork)
    return smaller


def widths(given: TorchNetwork) -> dict[str, int]:
    return {name: len(weight) for name, weight in conv_weights(given.module).items()}


# ---------------------------------------------------------------- what is computed


def masked(dense: TorchNetwork, smaller: TorchNetwork) -> tuple[TorchNetwork, int]:
    """Return the dense network with the channels at zero that the smaller one lacks, and their number.

    Which they are is read off the values of biases and variances, all different from each other.
    """
    twin, gone = copy.deepcopy(dense), 0
    for name, layer in twin.module.named_modules():
        if not isinstance(layer, nn.Conv2d | nn.BatchNorm2d):
            continue
        sign = NORMED.get(name, name)
        mark = (
            f"{sign}.running_var"
            if isinstance(twin.module.get_submodule(sign), nn.BatchNorm2d)
            else f"{sign}.bias"
        )
        lost = ~torch.isin(dense.module.state_dict()[mark], smaller.module.state_dict()[mark])
        gone += int(lost.sum()) if isinstance(layer, nn.Conv2d) else 0
        for tensor in (layer.weight, layer.bias, getattr(layer, "running_mean", None)):
            if tensor is not None:
                tensor.data[lost] = 0
    return twin, gone


@pytest.mark.parametrize(
    "options", [{}, {"scope": "layer"}, {"criterion": "taylor"}, {"criterion": "random"}, {"multiple": 4}]
)
def test_it_computes_what_the_masked_network_does(workspace: Workspace, options: dict[str, Any]) -> None:
    dense = network()
    smaller = compact(dense, workspace, **options)
    twin, gone = masked(dense, smaller)
    assert gone == sum(widths(dense).values()) - sum(widths(smaller).values()) > 0
    assert error(smaller.reference(images(8)), twin.reference(images(8))) < 1e-4
    assert smaller.facts.parameters is not None and smaller.facts.macs is not None
    dense.count()
    assert smaller.facts.parameters < (dense.facts.parameters or 0)
    assert smaller.facts.macs < (dense.facts.macs or 0)


def test_layers_alike_lose_alike(workspace: Workspace) -> None:
    dense = network()
    assert widths(compact(dense, workspace, scope="layer")) == {
        name: count // 2 for name, count in widths(dense).items()
    }


def test_criteria_differ_and_random_follows_the_seed(workspace: Workspace) -> None:
    def kept(seed: int, criterion: str) -> list[float]:
        own = Workspace(seed, workspace.folder, workspace.say)
        smaller = compact(network(), own, criterion=criterion, scope="layer")
        biases: list[float] = smaller.module.state_dict()["second.bias"].tolist()
        return biases

    assert kept(0, "random") == kept(0, "random") != kept(1, "random")
    assert kept(0, "l1") == kept(1, "l1") != kept(0, "taylor")


# ---------------------------------------------------------------- how much goes


def test_levels_are_shares_of_the_dense_network(workspace: Workspace) -> None:
    dense = network()
    total = sum(widths(dense).values())
    weights = sum(weight.numel() for weight in conv_weights(dense.module).values())
    smaller = dense
    for level in (0.25, 0.5, 0.75):
        smaller = compact(smaller, workspace, level=level)
        left = conv_weights(smaller.module)
        reached = smaller.facts.reached
        assert reached["units"] == pytest.approx(1 - sum(map(len, left.values())) / total)
        assert reached["units"] == pytest.approx(level, abs=0.01)
        assert reached["ratio"] == pytest.approx(1 - sum(each.numel() for each in left.values()) / weights)
        assert set(reached["layers"]) == set(left)
    assert [point["level"] for point in smaller.facts.reached["curve"]] == [0, 0.25, 0.5, 0.75]


@pytest.mark.parametrize("scope", ["global", "layer"])
def test_channels_stay_in_multiples_and_no_more_go_than_without(workspace: Workspace, scope: str) -> None:
    dense, any_number = network(), compact(network(), workspace, level=0.4, scope=scope)
    fours = compact(network(), workspace, level=0.4, scope=scope, multiple=4)
    for name, count in widths(fours).items():
        assert count % 4 == 0 or count == widths(dense)[name]
        assert count >= widths(any_number)[name]
    assert 0 < fours.facts.reached["units"] < any_number.facts.reached["units"]


def test_the_note_counts_channels_that_do_not_fill_vectors(workspace: Workspace) -> None:
    dense = network()
    dense.facts.note = "untrained"
    before = widths(dense)
    smaller = compact(dense, workspace, level=0.4)
    left = widths(smaller)
    uneven = sum(left[name] < count and left[name] % 16 > 0 for name, count in before.items())
    assert uneven > 0
    expected = (
        f"untrained; {uneven} of {len(left)} convolutions have channels in no multiple of 16, whose kernels "
        "are slow: `multiple = 16` avoids them"
    )
    assert smaller.facts.note == expected
    further = compact(smaller, workspace, level=0.6)
    assert further.facts.note is not None and further.facts.note.count("no multiple of 16") == 1
    assert compact(dense, workspace, level=0.4, multiple=16).facts.note == "untrained"


@pytest.mark.parametrize("scope", ["global", "layer"])
def test_a_channel_stays_in_every_layer(workspace: Workspace, scope: str) -> None:
    smaller = compact(network(), workspace, level=0.99, scope=scope)
    assert min(widths(smaller).values()) >= 1
    assert smaller.reference(images(2)).shape == (2, CLASSES)


def test_it_passes_the_levels_of_channel_pruning() -> None:
    assert CompactChannelPruning.GRID is ChannelPruning.GRID


def test_groups_lose_alike(workspace: Workspace) -> None:
    module = nn.Sequential(
        nn.Conv2d(3, 16, 3), nn.ReLU(), nn.Conv2d(16, 16, 3, groups=4), nn.ReLU(),
        nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(16, CLASSES),
    )  # fmt: skip
    grouped = compact(network(module), workspace, level=0.45).module.get_submodule("2")
    assert isinstance(grouped, nn.Conv2d)
    assert grouped.groups == 4
    assert grouped.in_channels % 4 == grouped.out_channels % 4 == 0
    assert grouped.in_channels + grouped.out_channels < 32


def test_what_is_smaller_trains_on(workspace: Workspace) -> None:
    dense = network()
    dense.facts.trained, dense.facts.accuracy, dense.facts.validation_accuracy = True, 0.1, 0.1
    smaller = compact(dense, workspace, recipe="short", epochs=1)
    untrained = compact(dense, workspace, recipe="none")
    assert widths(smaller) == widths(untrained)
    assert not torch.equal(conv_weights(smaller.module)["first"], conv_weights(untrained.module)["first"])
    assert smaller.facts.reached["curve"][-1]["epochs"] == 1


# ---------------------------------------------------------------- saved and restored


def assert_same(one: Any, other: TorchNetwork) -> None:
    assert isinstance(one, TorchNetwork)
    mine, yours = one.module.state_dict(), other.module.state_dict()
    assert list(mine) == list(yours)
    assert all(torch.equal(mine[name], yours[name]) for name in mine)
    assert np.array_equal(
        one.reference(images(4, other.facts.shape)), other.reference(images(4, other.facts.shape))
    )
    assert str(one.module) == str(other.module)  # with every layer's channels and groups


def test_a_restored_network_is_the_saved_one(workspace: Workspace, tmp_path: Path) -> None:
    smaller = compact(network(), workspace)
    smaller.save(tmp_path)
    part = CompactChannelPruning(level=0.5)
    assert_same(part.restore(SmallModel(), tmp_path, smaller.facts), smaller)


def test_other_techniques_work_on_what_is_left(workspace: Workspace, tmp_path: Path) -> None:
    smaller = compact(network(), workspace)
    gone = smaller.facts.reached["ratio"]
    chain = Chain((CompactChannelPruning(level=0.5), WeightPruning(level=0.5)))
    sparse = chain.compress(smaller, labelled(), workspace)
    assert isinstance(sparse, TorchNetwork)
    assert sparse.facts.reached["ratio"] == pytest.approx(1 - (1 - gone) / 2, abs=1e-3)
    sparse.save(tmp_path)
    assert_same(chain.restore(SmallModel(), tmp_path, sparse.facts), sparse)


def without_a_layer(state: dict[str, torch.Tensor]) -> None:
    del state["second.weight"]


def widened(state: dict[str, torch.Tensor]) -> None:
    state["first.weight"] = torch.zeros(17, *state["first.weight"].shape[1:])


def of_another_kernel(state: dict[str, torch.Tensor]) -> None:
    state["first.weight"] = state["first.weight"][..., 1:]


def of_another_rank(state: dict[str, torch.Tensor]) -> None:
    state["first.weight"] = state["first.weight"].flatten(1)


def emptied(state: dict[str, torch.Tensor]) -> None:
    state["first.weight"] = state["first.weight"][:0]


def at_odds(state: dict[str, torch.Tensor]) -> None:
    state["first.weight"] = state["first.weight"][1:]


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (without_a_layer, "1 missing: second.weight"),
        (widened, "first.weight is .17"),
        (of_another_kernel, "first.weight is"),
        (of_another_rank, "first.weight is"),
        (emptied, "first.weight is .0"),
        (at_odds, "do not fit one another"),
    ],
)
def test_a_file_of_another_network_is_refused(
    workspace: Workspace,
    tmp_path: Path,
    damage: Callable[[dict[str, torch.Tensor]], None],
    message: str,
) -> None:
    smaller = compact(network(), workspace)
    smaller.save(tmp_path)
    state = load_file(tmp_path / WEIGHTS_FILE)
    damage(state)
    save_file({name: tensor.contiguous() for name, tensor in state.items()}, tmp_path / WEIGHTS_FILE)
    with pytest.raises(InputError, match=message) as raised:
        CompactChannelPruning(level=0.5).restore(SmallModel(), tmp_path, smaller.facts)
    assert str(tmp_path) in str(raised.value)


# ---------------------------------------------------------------- what is declined


class Shuffled(nn.Module):
    """Two halves of the channels interleaved, whatever their number."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        n, c, h, w = x.shape
        return x.view(n, 2, c // 2, h, w).transpose(1, 2).reshape(n, c, h, w)


@pytest.mark.parametrize(
    ("between", "message"),
    [
        (Shuffled(), "more than set them to zero"),
        (nn.GroupNorm(2, 16), "'1' .GroupNorm."),
        (nn.Sigmoid(), "more than set them to zero"),  # of zero it is not zero
    ],
)
def test_channels_that_cannot_be_followed_are_left(
    workspace: Workspace, between: nn.Module, message: str
) -> None:
    module = nn.Sequential(
        nn.Conv2d(3, 16, 3), between, nn.Conv2d(16, 8, 3),
        nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(8, CLASSES),
    )  # fmt: skip
    with pytest.raises(Unsupported, match=message):
        compact(network(module), workspace, scope="layer")


def test_outputs_are_never_removed(workspace: Workspace) -> None:
    module = nn.Sequential(nn.Conv2d(3, CLASSES, 3), nn.AdaptiveAvgPool2d(1), nn.Flatten())
    with pytest.raises(Unsupported, match="number of outputs"):
        compact(network(module), workspace)


def test_a_network_without_convolutions_is_declined(workspace: Workspace) -> None:
    with pytest.raises(Unsupported, match="no convolution"):
        compact(network(nn.Sequential(nn.Flatten(), nn.Linear(1200, CLASSES))), workspace)


def test_only_models_of_torch_modules_are_restored(tmp_path: Path) -> None:
    with pytest.raises(Unsupported, match="torch modules"):
        CompactChannelPruning(level=0.5).restore(Onnx("x.onnx"), tmp_path, network().facts)


# ---------------------------------------------------------------- networks as they are used


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.parametrize(
    "name",
    ["resnet18", "resnet50", "mobilenet_v2", "efficientnet_b0", "densenet161", "googlenet", "vgg16"],
)
def test_torchvision_networks(name: str, workspace: Workspace, tmp_path: Path) -> None:
    data = parts.make("dataset", "random", {"size": 64, "images": 16}).load()
    model: TorchModel = parts.make("model", name, {})
    given = model.build(data, workspace)
    macs = [given.facts.macs or 0]
    for level in (0.3, 0.5):
        part = CompactChannelPruning(level=level)
        smaller = part.compress(given, data, workspace)
        assert isinstance(smaller, TorchNetwork)
        assert smaller.facts.reached["units"] == pytest.approx(level, abs=1e-3)
        macs.append(smaller.facts.macs or 0)
        smaller.save(tmp_path)
        assert_same(part.restore(model, tmp_path, smaller.facts), smaller)
    assert macs == sorted(macs, reverse=True) and macs[1] < 0.9 * macs[0] and macs[2] < 0.9 * macs[1]
