"""What rows are told of the kernels of a network."""

from __future__ import annotations

import math
import re
from pathlib import Path
from typing import Any

import onnx
import pytest
import torch
import tvm
from onnx import defs
from torch import nn
from torch.nn import functional as F

from dlas.axes.compilers.programs.tvm import TvmProgram, write_program
from dlas.lowering.graph.graph import bindings_of, called_kernel
from dlas.lowering.lower import LoweredNetwork, lower, schedule
from dlas.networks.exporting import as_onnx
from dlas.networks.onnx.network import OnnxNetwork
from dlas.networks.operator_names import LAYOUT_CHANGE, RELAX, TOPI, of_topi
from dlas.schedules.direct import Direct
from dlas.schedules.spatial_pack import SpatialPack
from dlas.stack import Workspace
from dlas.sweep.study import parts
from dlas.testing.algorithms import HOST
from tests.fixtures.small_network import images, network

SHAPE = (16, 12, 12)


class Kinds(nn.Module):
    """One of each kind of kernel: convolutions, pooling, concatenation, attention, linear layers."""

    def __init__(self) -> None:
        super().__init__()
        self.conv, self.again = nn.Conv2d(16, 32, 3, padding=1), nn.Conv2d(16, 32, 1)
        self.norm, self.head = nn.LayerNorm(64), nn.Linear(64, 10)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = torch.cat([F.relu(self.conv(x)), self.again(x)], 1)
        y = F.avg_pool2d(F.max_pool2d(y, 3, 2, 1, ceil_mode=True), 2)
        rows = self.norm(y.flatten(2).transpose(1, 2))
        rows = torch.softmax(rows @ rows.transpose(1, 2), -1) @ rows
        return F.gelu(self.head(rows).mean(1))


@pytest.fixture(scope="module", params=["plain", "blocked"])
def lowered(request: pytest.FixtureRequest) -> LoweredNetwork:
    algorithm = Direct() if request.param == "plain" else SpatialPack(layout="blocked")
    return lower(network(Kinds(), SHAPE), algorithm, 2, HOST)


def of(lowered: LoweredNetwork, operator: str) -> dict[str, Any]:
    """Return the first kernel of an operator."""
    return dict(next(layer for layer in lowered.operators if layer["operator"] == operator))


def test_every_kernel_that_runs_is_told_once_and_named(lowered: LoweredNetwork) -> None:
    calls = [called_kernel(value) for _, value in bindings_of(lowered.module["main"])]
    assert [layer["kernel"] for layer in lowered.operators] == [call for call in calls if call]
    assert len({layer["name"] for layer in lowered.operators}) == len(lowered.operators)
    assert [layer["name"] for layer in lowered.operators if layer["operator"] is None] == []
    shapes = [shape for layer in lowered.operators for shape in (*layer["inputs"], layer["output"])]
    assert shapes and all(2 <= len(shape) <= 4 and math.prod(shape) > 0 for shape in shapes)


def test_shapes_and_parameters_are_those_of_the_network_in_every_layout(lowered: LoweredNetwork) -> None:
    conv, pool, average = (of(lowered, name) for name in ("Conv", "MaxPool", "AveragePool"))
    assert (conv["name"], conv["inputs"], conv["output"]) == ("conv", [[2, 16, 12, 12]], [2, 32, 12, 12])
    assert conv["bias"] and conv["fused"] == ["Relu"]
    assert (pool["inputs"], pool["output"]) == ([[2, 64, 12, 12]], [2, 64, 7, 7])
    assert [pool[letter] for letter in "nchwpqrs"] == [2, 64, 12, 12, 7, 7, 3, 3]
    assert (pool["strides"], pool["padding"], pool["ceil_mode"]) == ([2, 2], [1, 1, 1, 1], True)
    assert (average["r"], average["s"], average["output"]) == (2, 2, [2, 64, 3, 3])
    concat, product, linear = (of(lowered, name) for name in ("Concat", "MatMul", "Gemm"))
    assert (concat["axis"], concat["inputs"]) == (1, [[2, 32, 12, 12], [2, 32, 12, 12]])
    assert (product["inputs"], product["output"]) == ([[2, 9, 64], [2, 64, 9]], [2, 9, 9])
    assert product["macs"] == 2 * 9 * 9 * 64
    assert (linear["name"], linear["inputs"], linear["output"]) == ("head", [[18, 64]], [18, 10])
    assert (linear["n"], linear["c"], linear["k"], linear["macs"]) == (18, 64, 10, 18 * 64 * 10)
    told = {layer["operator"] for layer in lowered.operators}
    assert {"Softmax", "LayerNormalization", "ReduceMean", "Transpose"} <= told
    everything = told | {name for layer in lowered.operators for name in layer.get("fused", ())}
    assert "Gelu" in everything


def test_layout_changes_are_kernels_of_their_own() -> None:
    blocked = lower(network(Kinds(), SHAPE), SpatialPack(layout="blocked"), 2, HOST)
    change = of(blocked, LAYOUT_CHANGE)
    assert change["inputs"] == [change["output"]] == [[2, 16, 12, 12]]
    assert change["input_layout"] == "NCHW" and re.fullmatch(r"NCHW\d+c", change["output_layout"])


def test_reshapes_in_a_row_are_no_kernel() -> None:
    module = nn.Sequential(nn.Conv2d(16, 32, 1), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(32, 4))
    blocked = lower(network(module, SHAPE), SpatialPack(layout="blocked"), 2, HOST)
    told = [layer["operator"] for layer in blocked.operators]
    assert told == [LAYOUT_CHANGE, "Conv", "GlobalAveragePool", "Gemm"] or told == told[1:], told


def test_a_program_times_the_layers_that_its_build_names(tmp_path: Path) -> None:
    lowered = lower(network(Kinds(), SHAPE), Direct(), 2, HOST)
    build = write_program(lowered, schedule(lowered, HOST), HOST, tmp_path)
    timed = TvmProgram(tmp_path, HOST).layers(images(2, SHAPE), 2)
    assert [layer["name"] for layer in timed] == [layer["name"] for layer in build.layers]
    assert all(layer["latency_s"] for layer in timed)


def test_layers_of_onnx_graphs_have_the_same_names() -> None:
    module = network(nn.Sequential(nn.Conv2d(16, 8, 3), nn.Flatten(), nn.Linear(800, 10)), SHAPE)
    model: onnx.ModelProto = as_onnx(module, 2)
    imported = lower(OnnxNetwork(model, module.facts), Direct(), 2)
    expected = lower(module, Direct(), 2)
    assert [layer["name"] for layer in imported.operators] == [layer["name"] for layer in expected.operators]
    assert [layer["name"] for layer in expected.operators] == ["0", "2"]


@pytest.mark.slow
@pytest.mark.parametrize("name", ["resnet18", "mobilenet_v2", "googlenet", "vit_b_16", "convnext_tiny"])
def test_no_kernel_of_a_network_is_unnamed(name: str, tmp_path: Path) -> None:
    data = parts.make("dataset", "random", {"size": 224, "images": 2}).load()
    made = parts.make("model", name, {}).build(data, Workspace(0, tmp_path, lambda line: None))
    told = lower(made, SpatialPack(), 1).operators
    assert told and [layer["kernel"] for layer in told if layer["operator"] is None] == []


def test_names_are_those_of_the_operator_sets() -> None:
    known = {schema.name for schema in defs.get_all_schemas_with_history() if not schema.domain}
    assert set(RELAX.values()) | set(TOPI.values()) <= known
    registered = set(tvm.ir.Op.list_op_names())
    assert {f"relax.{name}" for name in RELAX} - registered <= {"relax.nn.relu6"}
    assert of_topi("silu") == "Swish" and of_topi("no such operator") is None
