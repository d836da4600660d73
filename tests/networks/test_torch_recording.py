"""Which operators a torch module runs, and what is said of each."""

from __future__ import annotations

import json
from collections import Counter

import pytest
import torch
from torch import nn
from torch.nn.utils.parametrizations import weight_norm

from dlas.networks.convolutions import library_layers
from dlas.networks.torch.recording import Recording, record
from dlas.stack import Operator
from tests.fixtures.small_network import network


def recorded(module: nn.Module, *shape: int) -> Recording:
    """Return what one inference dispatches."""
    images = torch.zeros(shape)
    with torch.inference_mode():
        found = record(module.eval(), lambda: module(images))
    assert found is not None
    return found


def layers(module: nn.Module, *shape: int) -> dict[str, Operator]:
    """Return the operators of one inference by name."""
    found = recorded(module, *shape).layers
    assert len({layer["name"] for layer in found}) == len(found)
    return {layer["name"]: layer for layer in found}


def test_operators_of_modules_and_of_functions_have_names_in_the_order_that_they_run() -> None:
    assert {name: layer["operator"] for name, layer in layers(network().module, 2, 3, 20, 20).items()} == {
        "stem.0": "Conv",
        "stem.1": "BatchNormalization",
        "stem.2": "Relu",
        "pool": "MaxPool",
        "first": "Conv",
        "first_norm": "BatchNormalization",
        "relu": "Relu",
        "second": "Conv",
        "add": "Add",
        "relu#2": "Relu",
        "depthwise": "Conv",
        "relu6": "Clip",
        "pointwise": "Conv",
        "silu": "Swish",
        "mean": "GlobalAveragePool",
        "squeeze": "Conv",
        "sigmoid": "Sigmoid",
        "mul": "Mul",
        "cat": "Concat",
        "norm": "BatchNormalization",
        "relu#3": "Relu",
        "avg_pool2d": "AveragePool",
        "classifier.1": "Gemm",
        "classifier.2": "Relu",
        "classifier.3": "Gemm",
    }


def test_convolutions_are_described_as_builds_describe_them() -> None:
    small = network()
    found = layers(small.module, 2, 3, 20, 20)
    for described in library_layers(small, 2):
        built: dict[str, object] = json.loads(json.dumps(described))
        same = {name: value for name, value in found[described["name"]].items() if name in built}
        assert same == {name: built[name] for name in same}
        assert {"n", "c", "k", "r", "p", "strides", "padding", "groups", "macs"} <= set(same)


@pytest.mark.parametrize(
    ("module", "shape", "name", "expected"),
    [
        (
            nn.Sequential(nn.MaxPool2d((3, 2), 2, 1, ceil_mode=True)),
            (2, 4, 9, 8),
            "0",
            {
                "operator": "MaxPool",
                **{"n": 2, "c": 4, "h": 9, "w": 8, "r": 3, "s": 2, "p": 5, "q": 5},
                **{"strides": [2, 2], "padding": [1, 1, 1, 1], "dilation": [1, 1], "ceil_mode": True},
            },
        ),
        (
            nn.Sequential(nn.AvgPool2d(2)),
            (1, 4, 8, 8),
            "0",
            {"operator": "AveragePool", "r": 2, "s": 2, "strides": [2, 2], "ceil_mode": False},
        ),
        (
            nn.Sequential(nn.AdaptiveAvgPool2d(3)),
            (1, 4, 9, 9),
            "0",
            {"operator": "adaptive_avg_pool2d", "n": 1, "c": 4, "h": 9, "w": 9, "p": 3, "q": 3},
        ),
        (
            nn.Sequential(nn.AdaptiveAvgPool2d(1)),
            (1, 4, 9, 9),
            "0",
            {"operator": "GlobalAveragePool", "p": 1, "q": 1},
        ),
        (
            nn.Sequential(nn.Linear(6, 5)),
            (3, 4, 6),
            "0",
            {"operator": "Gemm", "n": 12, "c": 6, "k": 5, "bias": True, "macs": 360, "inputs": [[3, 4, 6]]},
        ),
        (
            nn.Sequential(nn.Linear(6, 5, bias=False)),
            (3, 6),
            "0",
            {"operator": "MatMul", "n": 3, "c": 6, "k": 5, "bias": False},
        ),
        (
            nn.Sequential(nn.Conv2d(4, 6, 3, padding="same", dilation=2, groups=2)),
            (1, 4, 9, 9),
            "0",
            {
                "operator": "Conv",
                **{"k": 6, "p": 9, "padding": [2, 2, 2, 2], "dilation": [2, 2], "groups": 2, "bias": True},
            },
        ),
        (
            nn.Sequential(nn.BatchNorm2d(4)),
            (2, 4, 3, 5),
            "0",
            {"operator": "BatchNormalization", "n": 2, "c": 4, "h": 3, "w": 5, "inputs": [[2, 4, 3, 5]]},
        ),
    ],
    ids=["max", "average", "adaptive", "global", "linear", "without bias", "same padding", "norm"],
)
def test_operators_have_their_parameters(
    module: nn.Module, shape: tuple[int, ...], name: str, expected: Operator
) -> None:
    found = layers(module, *shape)[name]
    assert {key: found.get(key) for key in expected} == expected


class Odd(nn.Module):
    """Modules that are used in unusual ways."""

    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv2d(4, 4, 3, padding=1, padding_mode="circular")
        self.normed = weight_norm(nn.Conv2d(4, 4, 1))
        self.relu = nn.ReLU(inplace=True)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.relu(self.conv(self.conv(x)))
        x = torch.relu(self.normed(x)) * torch.ones(1, 4, 1, 1)
        return torch.cat([x, x, x[:, :1]], -3).reshape(len(x), -1)


def test_the_operator_with_the_parameters_has_the_modules_name() -> None:
    found = layers(Odd(), 1, 4, 8, 8)
    convolutions = [name for name, layer in found.items() if layer["operator"] == "Conv"]
    assert convolutions == ["conv", "conv#2", "normed"]
    assert found["conv"]["inputs"] == [[1, 4, 10, 10]], "padded before"
    assert found["relu"]["operator"] == found["relu()"]["operator"] == "Relu"
    assert found["mul"]["inputs"] == [[1, 4, 8, 8], [1, 4, 1, 1]], "with the shape that is broadcast"
    assert (found["cat"]["inputs"], found["cat"]["axis"]) == ([[1, 4, 8, 8]] * 2 + [[1, 1, 8, 8]], 1)
    assert not any("reshape" in name or "view" in name for name in found)


def test_recording_leaves_the_module_as_it_was() -> None:
    module = network().module
    recorded(module, 1, 3, 20, 20)
    assert not any(each._forward_hooks or each._forward_pre_hooks for each in module.modules())
    assert not nn.modules.module._global_forward_hooks and not nn.modules.module._global_forward_pre_hooks


def test_a_backward_operator_belongs_to_what_made_its_node() -> None:
    module = network().module.train()
    optimizer = torch.optim.SGD(module.parameters(), 0.01, momentum=0.9)
    images, labels = torch.randn(2, 3, 20, 20), torch.zeros(2, dtype=torch.long)

    def step() -> None:
        optimizer.zero_grad()
        nn.functional.cross_entropy(module(images), labels).backward()
        optimizer.step()

    step()  # the first one has no momentum yet
    found = record(module, step)
    assert found is not None
    names = [layer["name"] for layer in found.layers]
    backward: dict[str, Counter[str]] = {name: Counter() for name in names}
    for each in found.dispatched:
        if each.layer is not None and each.time == "backward_s":
            backward[names[each.layer]][each.operator.overloadpacket.__name__] += 1
    for layer in library_layers(network(), 2):
        assert backward[layer["name"]]["convolution_backward"] == 1
    assert backward["stem.1"]["native_batch_norm_backward"] == 1
    assert backward["pool"]["max_pool2d_with_indices_backward"] == 1
    assert backward["classifier.1"]["mm"] == 2 and backward["classifier.1"]["sum"] == 1
    assert backward["relu#2"]["threshold_backward"] == 1
    assert backward["loss"]["nll_loss_backward"] == 1 and not backward["sgd"]
    assert names[-2:] == ["loss", "sgd"]
    operators = {
        each.operator.overloadpacket.__name__ for each in found.dispatched if each.layer == len(names) - 1
    }
    assert "mul_" in operators or "_foreach_mul_" in operators


def test_a_backward_pass_that_is_not_dispatched_here_is_noticed() -> None:
    module = nn.Linear(2, 2)
    assert record(module, lambda: module(torch.zeros(1, 2))) is None
