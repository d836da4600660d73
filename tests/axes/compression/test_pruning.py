"""Pruning by masks: what goes and stays gone, which level is chosen, what a study trains for it."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn
from torch.optim.optimizer import register_optimizer_step_post_hook

from dlas.axes.compression.block_pruning import BlockPruning
from dlas.axes.compression.channel_pruning import ChannelPruning
from dlas.axes.compression.pruning.elbow import knee, last_within
from dlas.axes.compression.pruning.importance import unit_importance
from dlas.axes.compression.pruning.masked import MaskedPruning
from dlas.axes.compression.pruning.units import nonzero_units, prunable, share_pruned
from dlas.axes.compression.weight_pruning import WeightPruning
from dlas.axes.models.cifar_resnet18 import CifarResnet18
from dlas.axes.models.cifar_vgg16 import CifarVgg16
from dlas.errors import Unsupported
from dlas.networks import training
from dlas.networks.recipes import Recipe
from dlas.networks.torch.network import TorchNetwork, conv_weights
from dlas.stack import Arrays, Data, Facts, SavedNetwork, csr_bytes
from dlas.sweep.study import parts
from tests.fixtures.package import ROOT
from tests.fixtures.tiny import (
    CLASSES,
    LEVELS,
    NOISE,
    SHAPE,
    make_network,
    network_of,
    network_steps,
    the_point,
    tiny,
    tiny_data,
    weights_of,
    workspace,
)

TECHNIQUES: tuple[type[MaskedPruning], ...] = (WeightPruning, ChannelPruning, BlockPruning)
CRITERIA = ("l1", "taylor", "random")


@pytest.fixture(autouse=True)
def one_thread() -> Iterator[None]:
    """Networks this small only lose by a second thread, most of all on a busy machine."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


def one_layer(weight: Any, **options: Any) -> nn.Sequential:
    """Return a network of one convolution with this weight [k, c / groups, r, s]."""
    tensor = torch.tensor(weight, dtype=torch.float32)
    filters, channels, *kernel = tensor.shape
    channels *= options.get("groups", 1)
    conv = nn.Conv2d(channels, filters, (kernel[0], kernel[1]), bias=False, **options)
    conv.weight.data = tensor
    return nn.Sequential(conv)


def pruned(part: MaskedPruning, module: nn.Sequential) -> torch.Tensor:
    """Return the weight of a network of one convolution after pruning it."""
    assert isinstance(part.level, float)
    part.prune(network_of(module), part.level, tiny_data(), workspace(Path()))
    return conv_weights(module)["0"].detach()


# ---------------------------------------------------------------- how much is pruned


@pytest.mark.parametrize("scope", ["global", "layer"])
@pytest.mark.parametrize("technique", TECHNIQUES)
def test_masks_reach_the_level_within_a_thousandth(technique: type[MaskedPruning], scope: Any) -> None:
    module = CifarResnet18(width=0.125).module((3, 32, 32), 10)
    for level in (0.012, *technique.GRID, 0.999):
        part = technique(level=level, scope=scope)
        part.prune(network_of(module), level, tiny_data(), workspace(Path()))
        nonzero = {name: nonzero_units(conv, part) for name, conv in prunable(module, part).items()}
        groups = [list(nonzero.values())] if scope == "global" else [[units] for units in nonzero.values()]
        for units in groups:
            total = sum(each.numel() for each in units)
            share = 1 - sum(int(each.sum()) for each in units) / total
            assert abs(share - level) <= max(0.001, 0.5 / total), (level, total)
        assert part.reached(network_of(module))["units"] == pytest.approx(share_pruned(module, part))


def test_scopes_differ() -> None:
    small, large = (nn.Conv2d(3, 8, 3), nn.Conv2d(8, 8, 3))
    large.weight.data.abs_().add_(1)
    module = nn.Sequential(small, large)
    WeightPruning(level=0.2).prune(network_of(module), 0.2, tiny_data(), workspace(Path()))
    assert int((large.weight == 0).sum()) == 0
    WeightPruning(level=0.2, scope="layer").prune(network_of(module), 0.2, tiny_data(), workspace(Path()))
    assert int((large.weight == 0).sum()) == round(0.2 * large.weight.numel())


# ---------------------------------------------------------------- what is pruned, by hand


def test_weights_of_least_magnitude_go_wherever_they_are() -> None:
    weight = [[[[1.0, -3.0]], [[2.0, -4.0]]], [[[-0.5, 5.0]], [[0.25, -6.0]]]]
    expected = [[[[0, -3.0]], [[0, -4.0]]], [[[0, 5.0]], [[0, -6.0]]]]
    assert pruned(WeightPruning(level=0.5), one_layer(weight)).tolist() == expected


def test_filters_of_least_sum_go_whole() -> None:
    weight = [[[[1.0]], [[1.0]]], [[[-3.0]], [[0.5]]], [[[0.0]], [[-1.5]]], [[[2.0]], [[2.0]]]]
    left = pruned(ChannelPruning(level=0.5), one_layer(weight))
    assert left.flatten(1).tolist() == [[0, 0], [-3.0, 0.5], [0, 0], [2.0, 2.0]]


@pytest.mark.parametrize(
    ("importance", "stay"),
    # By plain sums, 1 and 3 against 8 and 12, the small layer goes; by their means, 0.5 and 1.5, 0.8 and 1.2.
    [("plain", [[False, False], [True, True]]), ("relative", [[False, True], [False, True]])],
)
def test_filters_of_different_layers_are_compared_as_is_asked_for(
    importance: Any, stay: list[list[bool]]
) -> None:
    first, second = one_layer([[[[1.0]]], [[[-3.0]]]])[0], one_layer([[[[4.0]]] * 2, [[[-6.0]]] * 2])[0]
    module = nn.Sequential(first, second)
    part = ChannelPruning(level=0.5, importance=importance)
    part.prune(network_of(module), 0.5, tiny_data(), workspace(Path()))
    found = [(weight != 0).flatten(1).any(dim=1).tolist() for weight in conv_weights(module).values()]
    assert found == stay


def test_plain_sums_take_whole_layers_where_relative_ones_take_none() -> None:
    dead = {}
    for importance in ("plain", "relative"):
        module = CifarVgg16(width=0.25).module((3, 32, 32), 10)
        part = ChannelPruning(level=0.5, importance=importance)
        part.prune(network_of(module), 0.5, tiny_data(), workspace(Path()))
        dead[importance] = sum(not weight.any() for weight in conv_weights(module).values())
    assert dead["relative"] == 0 and dead["plain"] >= 5, dead


def test_weights_of_different_layers_are_compared_as_they_are() -> None:
    module = nn.Sequential(one_layer([[[[1.0, -3.0]]]])[0], one_layer([[[[4.0, -6.0]]]])[0])
    WeightPruning(level=0.5).prune(network_of(module), 0.5, tiny_data(), workspace(Path()))
    assert [weight.flatten().tolist() for weight in conv_weights(module).values()] == [[0, 0], [4, -6]]


def test_blocks_share_a_place_and_the_last_may_be_smaller() -> None:
    # Five filters of two weights, blocks of 2: sums 3 and 4, 7 and 5, then 2 and 9 of the filter left over.
    weight = [[[[1.0, -2.0]]], [[[-2.0, 2.0]]], [[[3.0, 4.0]]], [[[-4.0, -1.0]]], [[[2.0, 9.0]]]]
    left = pruned(BlockPruning(level=0.5, size=2), one_layer(weight))
    assert left[:, 0, 0].tolist() == [[0, 0], [0, 0], [3, 4], [-4, -1], [0, 9]]


def test_blocks_do_not_reach_into_another_group() -> None:
    # Two groups of three filters: blocks of 2 and 1 in each.
    weight = [[[[value]]] for value in (1.0, 1.0, 9.0, 1.5, 8.0, 3.0)]
    left = pruned(BlockPruning(level=0.5, size=2), one_layer(weight, groups=2))
    assert left.flatten().tolist() == [0, 0, 9, 1.5, 8, 0]


@pytest.mark.parametrize("size", [2, 4, 5])
def test_blocks_of_a_whole_network_share_places(size: int) -> None:
    network = tiny()
    part = BlockPruning(level=0.5, size=size)
    part.prune(network, 0.5, tiny_data(), workspace(Path()))
    for name in prunable(network.module, part):
        conv = network.module.get_submodule(name)
        assert isinstance(conv, nn.Conv2d)
        for group in conv.weight.detach().chunk(conv.groups):
            for block in group.split(size):
                places = (block != 0).flatten(1)
                assert (places == places[0]).all()
    assert (network.module.get_submodule("depthwise").weight != 0).all()  # type: ignore[union-attr]
    assert part.reached(network)["layers"]["depthwise"] == 0


def labelled(images: Any, labels: list[int]) -> Data:
    split = Arrays(np.asarray(images, np.float32), np.asarray(labels))
    return Data(split, split, split, split.images.shape[1:], 2)


def test_taylor_is_weight_times_gradient() -> None:
    # One input value, two outputs: the gradient by w[k] is the sum over images of (softmax[k] - label[k]) x.
    module = nn.Sequential(*one_layer([[[[1.0]]], [[[-0.5]]]]), nn.Flatten())
    data = labelled([[[[2.0]]], [[[-1.0]]]], [0, 1])
    part = WeightPruning(level=0.5, criterion="taylor")
    importance = unit_importance(module, part, "taylor", data, 0)["0"].flatten()
    first = [1 / (1 + np.exp(-1.5 * x)) for x in (2.0, -1.0)]  # softmax of (1.0 x, -0.5 x), its first value
    gradient = (first[0] - 1) * 2.0 + first[1] * -1.0
    np.testing.assert_allclose(importance, [abs(1.0 * gradient), abs(-0.5 * -gradient)], rtol=1e-5)
    assert module[0].weight.grad is None


def test_taylor_sums_over_a_unit_before_the_sign_goes() -> None:
    # Two equal and opposite contributions of a filter cancel: without it nothing changes.
    module = nn.Sequential(*one_layer([[[[1.0]], [[-1.0]]], [[[0.1]], [[0.1]]]]), nn.Flatten())
    data = labelled([[[[1.0]], [[1.0]]]], [0])
    part = ChannelPruning(level=0.5, criterion="taylor")
    importance = unit_importance(module, part, "taylor", data, 0)["0"].flatten()
    assert importance[0] == 0 and importance[1] > 0


def test_taylor_needs_labels() -> None:
    noise = parts.make("dataset", "random", {"size": 8}).load()
    with pytest.raises(Unsupported, match="'taylor' needs labels"):
        unit_importance(tiny().module, WeightPruning(level=0.5), "taylor", noise, 0)


def test_random_worth_follows_from_the_seed_alone() -> None:
    def importance(seed: int) -> torch.Tensor:
        found = unit_importance(tiny().module, WeightPruning(level=0.5), "random", tiny_data(), seed)
        return torch.cat([each.flatten() for each in found.values()])

    assert torch.equal(importance(1), importance(1)) and not torch.equal(importance(1), importance(2))
    assert importance(1).min() >= 0 and importance(1).max() < 1


# ---------------------------------------------------------------- what is pruned stays pruned


@pytest.mark.parametrize("technique", TECHNIQUES)
def test_sparsity_holds_after_every_step_of_the_optimiser(
    technique: type[MaskedPruning], tmp_path: Path
) -> None:
    network = tiny()
    seen: list[int] = []

    def look(optimizer: Any, *_: Any) -> None:
        group = optimizer.param_groups[0]
        assert group["momentum"] > 0 and group["weight_decay"] > 0
        weights = conv_weights(network.module)
        if not seen:
            zeros.update({name: weight == 0 for name, weight in weights.items()})
        seen.append(sum(int(weight[zeros[name]].count_nonzero()) for name, weight in weights.items()))

    zeros: dict[str, torch.Tensor] = {}
    hook = register_optimizer_step_post_hook(look)  # runs behind the optimiser's own hooks
    try:
        technique(level=0.5, epochs=len(technique.GRID) * 3).compress(
            network, tiny_data(), workspace(tmp_path)
        )
    finally:
        hook.remove()
    assert len(seen) == 3 * 3  # epochs of three batches each
    assert seen == [0] * len(seen)
    assert sum(int(each.sum()) for each in zeros.values()) > 0.2 * sum(
        each.numel() for each in zeros.values()
    )


def test_without_a_mask_training_would_bring_weights_back(tmp_path: Path) -> None:
    network = tiny()
    WeightPruning(level=0.5).prune(network, 0.5, tiny_data(), workspace(tmp_path))
    training.fit(network.module, tiny_data(), Recipe(epochs=1, batch=32), workspace(tmp_path))
    assert WeightPruning(level=0.5).reached(network)["ratio"] < 0.1


@pytest.mark.parametrize("criterion", CRITERIA)
@pytest.mark.parametrize("technique", ["weight_pruning", "block_pruning"])
def test_masks_only_grow_from_level_to_level(technique: str, criterion: str, tmp_path: Path) -> None:
    options = f'epochs = 7, criterion = "{criterion}", level = 0.9'
    point = the_point(f'compression = [{{ name = "{technique}", {options} }}]')
    made = make_network(point, tmp_path)
    assert [each.facts["reached"].get("level") for each in made] == [None, 0.5, 0.6, 0.7, 0.8, 0.9]
    for milder, stronger in itertools.pairwise(map(weights_of, made)):
        assert all((stronger[name][milder[name] == 0] == 0).all() for name in milder)
        assert any((stronger[name] == 0).sum() > (milder[name] == 0).sum() for name in milder)


def test_networks_follow_from_the_seed_alone(tmp_path: Path) -> None:
    point = the_point(LEVELS % 0.6)
    files = [
        make_network(replace(point, seed=seed), tmp_path / place)[-1].files
        for seed, place in ((0, "a"), (0, "b"), (1, "c"))
    ]
    assert files[0] == files[1] != files[2]


# ---------------------------------------------------------------- the elbow


@pytest.mark.parametrize(
    ("accuracies", "tolerance", "place"),
    [
        ([0.95, 0.95, 0.945, 0.94, 0.60, 0.20], 0.01, 3),  # a plateau
        ([0.95, 0.93, 0.91, 0.80, 0.60, 0.20], 0.01, 0),  # none: the dense network itself
        ([0.95, 0.93, 0.91, 0.80, 0.60, 0.20], 0.05, 2),
        ([0.95, 0.93, 0.945, 0.96, 0.93, 0.20], 0.01, 3),  # noise: one level below the line, the next is not
        ([0.95, 0.10, 0.10, 0.10, 0.10, 0.10], 0.01, 0),  # falls at once
        ([0.90, 0.95, 0.96, 0.95, 0.93, 0.92], 0.00, 5),  # fine-tuning gains, and never falls below
        ([0.90, 0.80, 0.80, 0.80, 0.80, 0.80], 0.10, 5),  # the tolerance itself is within it
    ],
)
def test_the_elbow_by_tolerance(accuracies: list[float], tolerance: float, place: int) -> None:
    assert last_within(accuracies, tolerance) == place


LEVELS_OF_CURVE = [0.0, 0.5, 0.6, 0.7, 0.8, 0.9]


@pytest.mark.parametrize(
    ("accuracies", "place"),
    [
        ([0.95, 0.95, 0.95, 0.95, 0.95, 0.10], 4),  # a plateau
        ([0.95, 0.90, 0.88, 0.84, 0.70, 0.20], 3),  # none: where the fall begins to weigh
        ([0.95, 0.91, 0.85, 0.86, 0.69, 0.20], 3),  # noise
        ([0.95, 0.20, 0.15, 0.12, 0.11, 0.10], 0),  # falls at once: the dense network itself
        ([1.0 - level for level in LEVELS_OF_CURVE], 0),  # a straight line has no knee
        ([0.95] * 6, 5),  # never breaks
        ([0.90, 0.91, 0.92, 0.93, 0.94, 0.95], 5),
    ],
)
def test_the_elbow_by_knee(accuracies: list[float], place: int) -> None:
    assert knee(LEVELS_OF_CURVE, accuracies) == place


# DLAS, Tables 2 and 5: top-1 of the dense network, then at the elbows of weights and of channels, percent.
ELBOWS = {
    "cifar_mobilenet_v2": (93.2, 92.7, 89.3), "cifar_resnet18": (94.3, 94.7, 89.0),
    "cifar_vgg16": (92.9, 93.1, 85.7), "cifar_mobilenet_v1": (91.3, 90.9, 86.9),
    "mobilenet_v2": (71.9, 58.4, 49.9), "resnet50": (76.1, 67.3, 46.6),
    "densenet161": (77.1, 74.3, 62.7), "efficientnet_b0": (77.7, 65.3, 54.9),
}  # fmt: skip


def test_one_point_is_stricter_than_the_papers_elbows_as_the_page_says() -> None:
    drops = [dense - at for dense, *elbows in ELBOWS.values() for at in elbows]
    lost = [
        drop for dense, *elbows in ELBOWS.values() for drop in (dense - at for at in elbows) if drop > 1.0
    ]
    page = " ".join((ROOT / "docs/reference/studies.md").read_text().split())
    assert (
        f"{len(lost)} of the paper's {len(drops)} elbows lose more, {min(lost):.1f} to {max(lost):.1f} points"
        in page
    )
    refused = [
        last_within([dense / 100, at / 100], 0.01) for dense, *elbows in ELBOWS.values() for at in elbows
    ]
    assert refused.count(0) == len(lost)


def saved_network(number: int, level: float, accuracy: float | None) -> SavedNetwork:
    curve = [{"level": level, "place": number}]
    facts = Facts(SHAPE, CLASSES, validation_accuracy=accuracy, reached={"curve": curve} if number else {})
    return SavedNetwork(facts, lambda: TorchNetwork(nn.Identity(), facts))


def curve_of(accuracies: Sequence[float | None]) -> list[SavedNetwork]:
    levels = (0.0, *WeightPruning.GRID)
    return [saved_network(number, *each) for number, each in enumerate(zip(levels, accuracies, strict=True))]


def test_the_network_at_the_elbow_is_chosen_with_the_whole_curve() -> None:
    curve = [0.9, 0.9, 0.9, 0.895, 0.8, 0.7, 0.5, 0.1]
    chosen = WeightPruning(level="elbow").choose(curve_of(curve))
    assert chosen is not None
    assert (chosen.facts.reached["level"], chosen.facts.validation_accuracy) == (0.7, 0.895)
    assert chosen.facts.reached["curve"] == [{"level": 0.99, "place": 7}]
    wider = WeightPruning(level="elbow", tolerance=0.25).choose(curve_of(curve))
    assert wider is not None and wider.facts.reached["level"] == 0.9


def test_the_dense_network_is_the_elbow_when_nothing_holds() -> None:
    chosen = WeightPruning(level="elbow").choose(curve_of([0.9, 0.5, 0.4, 0.3, 0.2, 0.1, 0.1, 0.1]))
    assert chosen is not None
    assert (chosen.facts.reached["level"], chosen.facts.validation_accuracy) == (0.0, 0.9)


def test_an_elbow_needs_accuracies(tmp_path: Path) -> None:
    with pytest.raises(Unsupported, match="needs a trained network and images with labels"):
        WeightPruning(level="elbow").choose(curve_of([None] * 8))
    point = the_point(f"{NOISE}\n" + LEVELS % '"elbow"')
    assert len(network_steps(point, tmp_path)) == 2  # said before anything is pruned
    with pytest.raises(Unsupported, match="needs a trained network"):
        make_network(point, tmp_path)


# ---------------------------------------------------------------- bytes and counts


def test_bytes_in_sparse_rows_are_counted_as_they_are_stored() -> None:
    # 3 filters, 5 values: each with its column, and 4 starts of rows.
    assert csr_bytes(3, 5) == 5 * (4 + 4) + 4 * 4
    network = tiny()
    network.count()
    weights = conv_weights(network.module)
    values = sum(weight.numel() for weight in weights.values())
    rows = sum(len(weight) + 1 for weight in weights.values())
    assert network.facts.model_bytes is not None and network.facts.csr_bytes is not None
    assert network.facts.csr_bytes - network.facts.model_bytes == 4 * values + 4 * rows  # larger than dense
    WeightPruning(level=0.9).prune(network, 0.9, tiny_data(), workspace(Path()))
    network.count()
    left = values - round(0.9 * values)
    assert network.facts.csr_bytes - network.facts.model_bytes == 8 * left + 4 * rows - 4 * values < 0


def test_effective_multiply_adds_leave_out_zeros() -> None:
    network = tiny()
    WeightPruning(level=0.7).prune(network, 0.7, tiny_data(), workspace(Path()))
    network.count()
    area = SHAPE[1] * SHAPE[2]  # every convolution writes as many places as the image has
    convolutions = conv_weights(network.module).values()
    dense = sum(weight.numel() * area for weight in convolutions) + 14 * CLASSES
    sparse = sum(int(weight.count_nonzero()) * area for weight in convolutions) + 14 * CLASSES
    assert (network.facts.macs, network.facts.effective_macs) == (dense, sparse)
