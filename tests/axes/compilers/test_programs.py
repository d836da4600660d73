from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import torchvision
from torch import nn

from dlas.axes.compilers.programs.onnxruntime import kernel_layers
from dlas.errors import Unsupported
from dlas.networks.exporting import as_onnx
from dlas.networks.layer_names import layer_of_scope
from dlas.networks.onnx.network import OnnxNetwork
from dlas.schedules.direct import Direct
from dlas.schedules.spatial_pack import SpatialPack
from dlas.stack import Conv, Decisions, Target
from dlas.sweep.study import parts
from dlas.testing.algorithms import HOST
from tests.fixtures.small_network import LAYERS, error, images, network
from tests.fixtures.tiled import bench

REFERENCES = ["onnxruntime", "torch_eager", "torch_compile"]
OURS = ["untuned", "hand"]


def compile_and_load(name: str, given: Any, batch: int, folder: Path) -> tuple[Any, Any]:
    compiler = parts.make("compiler", name, {})
    build = compiler.build(given, Direct, HOST, batch, folder / "build")
    return build, compiler.load(folder / "build", lambda: given, HOST)


@pytest.fixture(scope="module")
def graph() -> OnnxNetwork:
    small = network()
    return OnnxNetwork(as_onnx(small, 2), small.facts)


@pytest.mark.parametrize(
    "name",
    [*OURS, "onnxruntime", "torch_eager", pytest.param("torch_compile", marks=pytest.mark.slow)],
)
def test_compiled_network_computes_what_the_network_does(name: str, tmp_path: Path) -> None:
    small, x = network(), images(2)
    build, program = compile_and_load(name, small, 2, tmp_path)
    assert error(program.run(x), small.reference(x)) <= 1e-4
    bound = program.bind(x)
    bound()
    bound()
    assert sorted(layer["name"] for layer in build.layers if "algorithm" in layer) == sorted(LAYERS)
    assert [layer["macs"] for layer in build.layers if layer["name"] == "first"] == [2 * 16 * 16 * 9 * 25]
    assert program.timer(x) is None, "the process's own clock serves on processors"
    times = program.layers(x, 3)
    if name == "torch_compile":
        assert times is None
    else:
        assert times is not None and set(LAYERS) <= {layer["name"] for layer in times}
        assert all(0 < layer["latency_s"] < 10 for layer in times)


@pytest.mark.parametrize("name", [*OURS, "metaschedule", *REFERENCES])
def test_runtimes_with_kernels_of_their_own_say_so(name: str) -> None:
    assert parts.find("compiler", name).cls.own_kernels == (name in REFERENCES)


@pytest.mark.parametrize("name", ["untuned", "onnxruntime"])
def test_graph_compiles(name: str, graph: OnnxNetwork, tmp_path: Path) -> None:
    x = images(2)
    build, program = compile_and_load(name, graph, 2, tmp_path)
    assert error(program.run(x), graph.reference(x)) <= 1e-4
    assert sorted(layer["name"] for layer in build.layers if "algorithm" in layer) == sorted(LAYERS)


@pytest.mark.parametrize("name", ["torch_eager", pytest.param("torch_compile", marks=pytest.mark.slow)])
def test_torch_refuses_graphs(name: str, graph: OnnxNetwork, tmp_path: Path) -> None:
    with pytest.raises(Unsupported, match="ONNX graph"):
        compile_and_load(name, graph, 2, tmp_path)


@pytest.mark.parametrize("name", ["untuned", "onnxruntime"])
def test_a_graph_fixed_to_another_batch_is_refused(name: str, graph: OnnxNetwork, tmp_path: Path) -> None:
    with pytest.raises(Unsupported, match="fixed to batch 2, not 3"):
        compile_and_load(name, graph, 3, tmp_path)


def test_any_batch_is_fixed_at_compile_time(graph: OnnxNetwork, tmp_path: Path) -> None:
    free = OnnxNetwork(type(graph.model).FromString(graph.model.SerializeToString()), graph.facts)
    free.model.graph.input[0].type.tensor_type.shape.dim[0].dim_param = "batch"
    x = images(1)
    for name in ("untuned", "onnxruntime"):
        _, program = compile_and_load(name, free, 1, tmp_path / name)
        assert program.run(x).shape == (1, 10)


@pytest.mark.parametrize("name", REFERENCES)
def test_references_refuse_targets_they_do_not_run_on(name: str, tmp_path: Path) -> None:
    board = Target({"kind": "opencl"}, 1)
    with pytest.raises(Unsupported, match="opencl"):
        parts.make("compiler", name, {}).build(network(), Direct, board, 1, tmp_path)


def test_onnx_runtime_gets_its_threads(tmp_path: Path) -> None:
    compiler = parts.make("compiler", "onnxruntime", {})
    compiler.build(network(), Direct, HOST, 1, tmp_path)
    program = compiler.load(tmp_path, network, Target(HOST.description, 1))
    assert program._session.get_session_options().intra_op_num_threads == 1


def test_programs_leave_no_hooks_behind(tmp_path: Path) -> None:
    small = network()
    _, program = compile_and_load("torch_eager", small, 1, tmp_path)
    program.layers(images(1), 2)
    assert not any(m._forward_hooks or m._forward_pre_hooks for m in small.module.modules())


@pytest.mark.parametrize("name", ["torch_eager", pytest.param("torch_compile", marks=pytest.mark.slow)])
def test_channels_last_changes_the_layout_and_not_the_numbers(name: str, tmp_path: Path) -> None:
    layers = nn.Conv2d(3, 8, 3), nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(8, 10)
    small, x = network(nn.Sequential(*layers)), images(2)
    expected = small.reference(x)
    program = parts.make("compiler", name, {"channels_last": True}).load(tmp_path, lambda: small, HOST)
    assert error(program.run(x), expected) <= 1e-4
    program.bind(x)()
    weights = [layer.weight for layer in small.module.modules() if isinstance(layer, nn.Conv2d)]
    assert all(weight.is_contiguous(memory_format=torch.channels_last) for weight in weights)


def test_a_missing_library_is_an_error(tmp_path: Path) -> None:
    compiler = parts.make("compiler", "untuned", {})
    with pytest.raises(OSError):
        compiler.load(tmp_path, network, HOST)


@pytest.mark.parametrize(
    ("scope", "layer"),
    [
        ("/layer1/layer1.0/conv1/Conv", "layer1.0.conv1"),
        ("/features/features.1/conv/conv.0/conv.0.0/Conv", "features.1.conv.0.0"),
        ("/conv1/Conv", "conv1"),
        ("Conv_12", ""),
    ],
)
def test_scopes_become_module_paths(scope: str, layer: str) -> None:
    assert layer_of_scope(scope) == layer


def test_fused_kernels_keep_their_layer() -> None:
    names = kernel_layers(as_onnx(network(), 1).graph)
    assert set(names.values()) == set(LAYERS)
    assert names["/stem/stem.2/Relu_output_0_nchwc"] == "stem.0"


def test_onnxruntime_tells_what_its_nodes_compute_together(tmp_path: Path) -> None:
    compiler, small = parts.make("compiler", "onnxruntime", {}), network()
    build = compiler.prepare(small, HOST, 2, tmp_path)
    layers = compiler.load(tmp_path, lambda: small, HOST).layers(images(2), 2)
    told = {layer["name"]: layer for layer in layers}
    assert all(layer["operator"] and layer["inputs"] and layer["output"] for layer in layers)
    assert told["stem.0"]["operator"] == "Conv" and told["stem.0"]["fused"] == ["Relu"]
    for layer in build.layers:
        batch, channels, *plane = told[layer["name"]]["inputs"][0]
        _, own, *sizes = layer["inputs"][0]
        assert batch == 2 == told[layer["name"]]["output"][0]
        assert plane == sizes and own <= channels < own + 16, "channels are padded to whole blocks"
    pools = [layer for layer in layers if layer["operator"] == "MaxPool"]
    assert pools and all({"r", "s", "strides", "padding", "p", "q"} <= set(layer) for layer in pools)
    linear = [layer for layer in layers if layer["operator"] == "Gemm"]
    assert [(layer["n"], layer["c"], layer["k"]) for layer in linear] == [(2, 40, 256), (2, 256, 10)]
    assert any("Add" in layer["fused"] for layer in layers), "the residual addition is in a convolution"


ZOO = [
    "resnet18",
    "mobilenet_v2",
    "mobilenet_v3_small",
    "efficientnet_b0",
    "densenet121",
    "shufflenet_v2_x1_0",
    "googlenet",
    "squeezenet1_1",
    "inception_v3",
    "mnasnet1_0",
    "alexnet",
    "vgg11",
]


@pytest.mark.slow
@pytest.mark.parametrize("name", ZOO)
def test_torchvision_networks_compile(name: str, tmp_path: Path) -> None:
    torch.manual_seed(0)
    shape = (3, 96, 96)
    options = {"init_weights": True} if name in ("googlenet", "inception_v3") else {}
    given, x = network(torchvision.models.get_model(name, **options), shape), images(1, shape)
    build, program = compile_and_load("untuned", given, 1, tmp_path)
    assert error(program.run(x), given.reference(x)) <= 1e-4
    assert build.coverage == {"convolutions": 1.0, "macs": 1.0}
    assert len({layer["name"] for layer in build.layers}) == len(build.layers)
    assert np.isfinite(sum(layer["latency_s"] for layer in program.layers(x, 1)))


def test_hand_takes_the_best_guess_and_the_minimal_schedule_where_there_is_none(tmp_path: Path) -> None:
    small, x = network(), images(1)
    for algorithm, decided in ((SpatialPack(layout="blocked"), True), (Bare(), False)):
        folder = tmp_path / type(algorithm).__name__
        build = parts.make("compiler", "hand", {}).compile(small, algorithm, HOST, 1, folder)
        decisions = [
            layer["decisions"] for layer in build.layers if "algorithm" in layer and layer["declined"] is None
        ]
        assert decisions and all((made is not None) == decided for made in decisions)
        program = parts.make("compiler", "hand", {}).load(folder, lambda: small, HOST)
        assert error(program.run(x), small.reference(x)) <= 1e-4


@dataclass(frozen=True)
class Bare(Direct):
    """Has no design space."""

    def space(self, conv: Conv, target: Target) -> Sequence[Decisions]:
        return ()


@pytest.mark.slow
def test_metaschedule_builds_what_a_search_chose(tmp_path: Path) -> None:
    small, x = network(), images(1)
    cpu = parts.make("hardware", "local_cpu", {"threads": 1})
    compiler = parts.make("compiler", "metaschedule", {"preset": "smoke", "trials": 2})
    folder, algorithm = tmp_path / "build", SpatialPack(layout="blocked")
    folder.mkdir()
    told = compiler.tune(small, algorithm, 1, bench(tmp_path, cpu), folder)
    build = compiler.compile(small, algorithm, cpu.target(), 1, folder)
    program = compiler.load(folder, lambda: small, cpu.target())
    assert error(program.run(x), small.reference(x)) <= 1e-4
    linear = {"linear 1x40x256", "linear 1x256x10"}
    assert linear <= {curve["layers"][0] for curve in told["curves"]} <= {*LAYERS, *linear}
    assert told["trials"] == sum(curve["trials"] for curve in told["curves"])
    tuned = [layer for layer in build.layers if "trials" in layer]
    assert sorted(layer["name"] for layer in tuned) == sorted([*LAYERS, "classifier.1", "classifier.3"])
    assert all(0 < layer["valid_trials"] <= layer["trials"] and layer["tuned_s"] > 0 for layer in tuned)
    with pytest.raises(ValueError, match="not the kernel that was tuned"):
        compiler.compile(small, algorithm, cpu.target(), 2, folder)


@pytest.mark.parametrize(
    ("options", "trials", "early_stop", "shared", "per_round"),
    [
        ({}, 32, 0, False, 16),
        ({"preset": "smoke"}, 4, 0, False, 16),
        ({"preset": "paper"}, 20_000, 1_000, True, 16),
        ({"preset": "paper", "trials": 64}, 64, 1_000, False, 16),
        ({"preset": "paper", "early_stop": 0, "per_round": 8}, 20_000, 0, True, 8),
        ({"trials": 7, "early_stop": 3}, 7, 3, False, 16),
    ],
)
def test_presets_stand_for_what_is_not_given(
    options: dict[str, Any], trials: int, early_stop: int, shared: bool, per_round: int
) -> None:
    settings = parts.make("compiler", "metaschedule", options).settings()
    found = (settings.trials, settings.early_stop, settings.shared, settings.per_round)
    assert found == (trials, early_stop, shared, per_round)
    assert settings.space == "algorithm"
