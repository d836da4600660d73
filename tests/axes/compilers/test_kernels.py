"""The kernels that compilers tell of a network before anything is built are those that run."""

from __future__ import annotations

import random
from pathlib import Path

import pytest
from tvm.target import codegen

from dlas.axes.compilers.programs.onnxruntime_kernels import kernels_of
from dlas.axes.models.layers.drawing import draw
from dlas.axes.models.layers.kinds import text
from dlas.axes.models.layers.modules import network as module_of
from dlas.axes.models.layers.reading import parse
from dlas.axes.models.torchvision import Torchvision
from dlas.errors import Unsupported
from dlas.networks.exporting import as_onnx
from dlas.networks.onnx.network import OnnxNetwork
from dlas.networks.operators import Operators, at_batch, read_operators, save_operators
from dlas.schedules.spatial_pack import SpatialPack
from dlas.stack import Backend, Facts, Layer, Network, Target
from dlas.sweep.engine.row import merged_layers
from dlas.sweep.study import parts
from dlas.testing.kernels import match
from dlas.testing.networks import random_images
from tests.fixtures.small_network import network as small

SHAPE, BATCH = (3, 16, 16), 2
HERE = Target({"kind": "llvm", "mcpu": codegen.llvm_get_system_cpu(), "num-cores": 2}, threads=2)
"""This machine's own processor, which decides what ONNX Runtime computes in blocks."""
ALGORITHM = SpatialPack(layout="blocked")
LISTS = {
    "residual": "conv3x3-16,bn,relu,add(conv3x3-16,bn,relu,conv3x3-16,bn),relu,add(conv1x1-16,bn),max3/2",
    "two to add": "conv3x3-16,relu,add(conv1x1-16),cat(input|conv1x1-12,relu6),conv3x3-24,hardswish",
    "not in blocks": "conv3x3-18,relu,dw3x3,bn,conv1x1-20,bn,relu,add(dw3x3,bn),conv1x1-6,silu,conv1x1-5",
    "products": "conv3x3-32,mul(adaptive1,conv1x1-8,relu,conv1x1-32,hardsigmoid),conv3x3-16g4,hardswish",
    "norms": "conv3x3-16,cat(input|bn,relu,conv1x1-8),bn,avg2/2,cat(input|bn,tanh),hardswish,linear-9,relu",
    "sums": "conv3x3-14,add(conv1x1-14),relu,add(dw3x3),hardswish,conv1x1-16,add(dw3x3),hardsigmoid,elu",
    "halves": "conv3x3-24,bn,relu,halves(conv1x1-12,bn,relu,dw3x3,bn),shuffle2,halves(relu)",
}


def made(layers: str) -> Network:
    return small(module_of(parse(layers), SHAPE, 10), SHAPE)


def compiler(name: str) -> Backend:
    part: Backend = parts.make("compiler", name, {})
    return part


def told(name: str, network: Network, operators: Operators, batch: int = BATCH) -> list[Layer]:
    """Return the kernels that a compiler tells of a network."""
    return compiler(name).kernels(lambda: network, at_batch(operators, batch), lambda: ALGORITHM, HERE, batch)


def ran(name: str, network: Network, folder: Path, batch: int = BATCH) -> list[Layer]:
    """Return the layers of a network's program, as rows have them."""
    build = compiler(name).build(network, lambda: ALGORITHM, HERE, batch, folder)
    program = compiler(name).load(folder, lambda: network, HERE)
    return merged_layers(build.layers, program.layers(random_images(batch, network.facts.shape), 1) or [])


@pytest.mark.parametrize("layers", LISTS.values(), ids=LISTS)
@pytest.mark.parametrize("name", ["onnxruntime", "torch_eager"])
def test_what_is_told_is_what_runs(name: str, layers: str, tmp_path: Path) -> None:
    network = made(layers)
    found = match(told(name, network, network.operators()), ran(name, network, tmp_path))
    assert found.share == 1 and not found.missing and not found.extra, found


def test_tvm_tells_the_kernels_of_its_build(tmp_path: Path) -> None:
    network = made("conv3x3-16,bn,relu,max2/2,conv1x1-24,silu")
    found = match(told("hand", network, {1: [], 2: []}), ran("hand", network, tmp_path))
    assert found.share == 1 and not found.missing and not found.extra, found


@pytest.mark.slow
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("name", ["onnxruntime", "torch_eager", "hand"])
def test_the_kernels_of_drawn_networks_are_told(name: str, tmp_path: Path) -> None:
    for number in range(8):
        drawn = made(text(draw(random.Random(number))))
        found = match(told(name, drawn, drawn.operators()), ran(name, drawn, tmp_path / str(number)))
        assert found.share >= 0.98, (number, found)


@pytest.mark.slow
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("name", ["onnxruntime", "torch_eager", "hand"])
@pytest.mark.parametrize(
    "network",
    [
        *("alexnet", "densenet161", "googlenet", "inception_v3", "mnasnet1_0", "mobilenet_v2", "resnet18"),
        *(
            "resnet50",
            "shufflenet_v2_x1_0",
            "squeezenet1_0",
            "vgg16",
            "efficientnet_b0",
            "mobilenet_v3_large",
        ),
    ],
)
def test_98_percent_of_the_time_of_real_networks_is_told(name: str, network: str, tmp_path: Path) -> None:
    side = 299 if network == "inception_v3" else 224
    real = Torchvision(network).construct(Facts((3, side, side), 1000), seed=0)
    assert match(told(name, real, real.operators(), 1), ran(name, real, tmp_path, 1)).share >= 0.98


def test_operators_that_were_saved_tell_the_same_for_any_batch(tmp_path: Path) -> None:
    network = made(LISTS["halves"])
    save_operators(network, tmp_path)
    saved = read_operators(tmp_path)
    for name in ("onnxruntime", "torch_eager"):
        found = match(told(name, network, saved, 3), ran(name, network, tmp_path / name, 3))
        assert not found.missing and not found.extra, found


def test_a_graph_tells_what_its_module_tells(tmp_path: Path) -> None:
    network = made(LISTS["residual"])
    graph = OnnxNetwork(as_onnx(network, None), network.facts)
    found = match(told("onnxruntime", graph, graph.operators()), ran("onnxruntime", graph, tmp_path))
    assert found.share >= 0.98, found


def test_without_blocks_of_channels_nothing_is_copied() -> None:
    operators = at_batch(made(LISTS["not in blocks"]).operators(), 1)
    plain, blocks = kernels_of(operators, None), kernels_of(operators, 16)
    copies = {"ReorderInput", "ReorderOutput"}
    assert not copies & {layer["operator"] for layer in plain}
    assert copies & {layer["operator"] for layer in blocks}
    assert ["Relu"] in [layer["fused"] for layer in plain]


def test_what_cannot_be_told_is_said() -> None:
    network = made("conv1x1-8")
    with pytest.raises(Unsupported, match="known only once they have run"):
        told("torch_compile", network, network.operators())
    gpu = Target({"kind": "cuda"}, threads=1)
    with pytest.raises(Unsupported, match="for a GPU"):
        compiler("onnxruntime").kernels(lambda: network, (), lambda: ALGORITHM, gpu, 1)
    halved: list[Layer] = [{"name": "relu", "operator": "Relu", "types": {"output": "float16"}}]
    with pytest.raises(Unsupported, match="for float32, not for float16"):
        compiler("onnxruntime").kernels(lambda: network, halved, lambda: ALGORITHM, HERE, 1)


def test_what_is_not_told_lowers_the_share() -> None:
    one: Layer = {"name": "one", "operator": "Relu", "output": [1, 8, 4, 4], "latency_s": 3.0}
    other: Layer = {"name": "other", "operator": "Relu", "output": [1, 8, 2, 2], "latency_s": 1.0}
    found = match([one, one], [one, other])
    assert found.share == 0.75 and found.missing.total() == found.extra.total() == 1
    fused: Layer = {**one, "fused": ["Add"]}
    assert match([one], [fused]).share == 0
