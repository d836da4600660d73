"""The operators that are kept with a network, and those at other batches that follow from them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import torch
from onnx import TensorProto, helper
from torch import nn

from dlas.errors import Unsupported
from dlas.networks.exporting import as_onnx
from dlas.networks.onnx.network import OnnxNetwork
from dlas.networks.onnx.operators import graph_operators
from dlas.networks.operators import OPERATORS_FILE, at_batch, read_operators, save_operators
from dlas.networks.torch.network import TorchNetwork
from dlas.networks.torch.recording import record
from dlas.stack import Facts, Network, NetworkOperator, Operator
from tests.fixtures.small_network import network

KINDS = [
    *[
        "Conv",
        "Relu",
        "MaxPool",
        "Conv",
        "Relu",
        "Conv",
        "Add",
        "Relu",
        "Conv",
        "Clip",
        "Conv",
        "Sigmoid",
        "Mul",
    ],
    *["GlobalAveragePool", "Conv", "Sigmoid", "Mul", "Concat", "BatchNormalization", "Relu", "AveragePool"],
    *["Gemm", "Relu", "Gemm"],
]
"""Operators of the small network as a graph, where convolutions have batch norms in their weights."""


def graph(batch: int | None) -> OnnxNetwork:
    small = network()
    return OnnxNetwork(as_onnx(small, batch), small.facts)


def kept(given: Network, folder: Path, batch: int) -> list[Operator]:
    """Return the operators at a batch after writing and reading them."""
    save_operators(given, folder)
    return at_batch(read_operators(folder), batch)


def run(module: nn.Module, batch: int, shape: tuple[int, int, int]) -> list[NetworkOperator]:
    """Return the operators that an inference of a batch dispatches."""
    images = torch.rand(batch, *shape)
    with torch.inference_mode():
        recording = record(module, lambda: module(images))
    assert recording is not None
    return recording.operators()


@pytest.mark.parametrize("batch", [1, 2, 8])
def test_a_modules_operators_at_any_batch_are_those_that_run_at_it(batch: int, tmp_path: Path) -> None:
    small = network()
    assert kept(small, tmp_path, batch) == run(small.module, batch, small.facts.shape)


class Folded(nn.Module):
    """Computes with the batch in one dimension together with others, and without it for a single image."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        pieces = x.flatten(0, 1) @ torch.ones(4, 5)
        scores: torch.Tensor = (pieces.sum(-1).reshape(len(x), -1) + 1).squeeze(0)
        return torch.relu(scores)


@pytest.mark.parametrize("batch", [1, 2, 7])
def test_a_batch_may_be_part_of_any_dimension(batch: int, tmp_path: Path) -> None:
    folded = TorchNetwork(Folded(), Facts((3, 2, 4), 6))
    found = kept(folded, tmp_path, batch)
    assert found == run(folded.module, batch, (3, 2, 4))
    assert [layer["n"] for layer in found if layer["operator"] == "MatMul"] == [6 * batch]


@pytest.mark.parametrize("batch", [1, 8])
def test_a_graphs_operators_come_from_its_shapes(batch: int, tmp_path: Path) -> None:
    found = kept(graph(None), tmp_path, batch)
    assert [layer["operator"] for layer in found] == KINDS
    assert found == graph_operators(as_onnx(network(), None), batch)
    assert len({layer["name"] for layer in found}) == len(found)


def test_graph_and_module_agree_on_what_both_have() -> None:
    module = {layer["name"]: layer for layer in at_batch(network().operators(), 2)}
    for layer in at_batch(graph(None).operators(), 2):
        if layer["operator"] == "Conv":
            same = set(layer) - {"types", "bias", "reads"}  # the bias is that of the batch norm
            assert {key: module[layer["name"]].get(key) for key in same} == {
                key: layer.get(key) for key in same
            }


def test_a_graph_that_is_fixed_to_a_batch_has_the_operators_of_that_batch_alone(tmp_path: Path) -> None:
    assert kept(graph(3), tmp_path, 3)[0]["n"] == 3
    with pytest.raises(Unsupported, match="fixed to batch 3, not 4"):
        at_batch(read_operators(tmp_path), 4)


def test_a_graph_whose_shapes_are_not_known_keeps_none(tmp_path: Path) -> None:
    inputs = [helper.make_tensor_value_info("x", TensorProto.FLOAT, [2, 4])]
    outputs = [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)]
    nodes = [
        helper.make_node("SplitToSequence", ["x"], ["pieces"], axis=1, keepdims=1),
        helper.make_node("ConcatFromSequence", ["pieces"], ["y"], axis=1),
    ]
    model = helper.make_model(
        helper.make_graph(nodes, "g", inputs, outputs), opset_imports=[helper.make_opsetid("", 17)]
    )
    network = OnnxNetwork(model, Facts((4, 1, 1), 4))
    save_operators(network, tmp_path)
    assert read_operators(tmp_path) == {}


def test_a_network_that_does_not_know_its_operators_keeps_none(tmp_path: Path) -> None:
    assert read_operators(tmp_path) == {}
    with pytest.raises(Unsupported, match="not known"):
        at_batch({}, 1)


def test_the_file_holds_no_times(tmp_path: Path) -> None:
    save_operators(network(), tmp_path)
    content = json.loads((tmp_path / OPERATORS_FILE).read_text())
    assert list(content) == ["1", "2"] and not any("latency_s" in layer for layer in content["1"])
