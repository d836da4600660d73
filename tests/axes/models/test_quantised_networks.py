"""Whole networks in int8, at the size that they are made for, against ONNX Runtime."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import TensorProto, helper, numpy_helper

from dlas.axes.compression.int8 import Int8
from dlas.axes.datasets.random import Random
from dlas.networks.exporting import as_onnx
from dlas.networks.onnx.counting import graph_input
from dlas.networks.onnx.network import OnnxNetwork
from dlas.stack import Facts, Images, Workspace
from dlas.sweep.study import parts
from tests.fixtures.quantised_graphs import built

pytestmark = [pytest.mark.slow, pytest.mark.timeout(1800)]

SMALL = ["cifar_resnet18", "cifar_mobilenet_v1", "cifar_mobilenet_v2", "cifar_vgg16"]
EXACT = ["resnet18", "resnet50", "mobilenet_v2", "vgg16", "efficientnet_b0", *SMALL]
"""Networks all of whose operators ONNX Runtime computes in integers, or on single numbers."""
STEPS = {"densenet161": 3}
"""Networks with float32 operators, and the most steps of the output that ours may be apart."""


class Case(NamedTuple):
    """A network in int8, and an image."""

    name: str
    network: OnnxNetwork
    image: Images


@pytest.fixture(scope="module", params=[*EXACT, *STEPS])
def case(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Case:
    """Each network, calibrated on noise."""
    small = request.param in SMALL
    data = Random(size=32 if small else 224, images=8, classes=100).load()
    workspace = Workspace(0, tmp_path_factory.mktemp(request.param), say=lambda line: None)
    options = {"recipe": "none"} if small else {}
    dense = parts.make("model", request.param, options).build(data, workspace)
    made = Int8(calibration="none", images=8).compress(dense, data, workspace)
    assert isinstance(made, OnnxNetwork)
    return Case(request.param, made, data.test[[0]][0])


def test_a_network_in_integers_is_right(case: Case, tmp_path: Path) -> None:
    expected = case.network.reference(case.image)
    step = np.diff(np.unique(expected)).min()
    build, program = built(case.network, parts.make("algorithm", "blocked", {}), "hand", tmp_path, 1)
    assert build.coverage is not None and build.coverage["integers"] == 1
    apart = np.rint((program.run(case.image) - expected) / step)
    assert np.abs(apart).max() <= STEPS.get(case.name, 0), (
        f"{np.mean(apart != 0):.2%} of the outputs are not equal"
    )


def test_every_convolution_is_within_a_step(case: Case, tmp_path: Path) -> None:
    algorithm = parts.make("algorithm", "blocked", {})
    values = unequal = 0
    for alone, x, step in convolutions(case):
        expected = alone.reference(x)
        _, program = built(alone, algorithm, "hand", tmp_path / str(values), 1)
        apart = np.rint((program.run(x) - expected) / step)
        assert np.abs(apart).max() <= 1
        values, unequal = values + apart.size, unequal + int(np.count_nonzero(apart))
    print(f"{case.name}: {unequal} of {values} outputs of its convolutions are not equal")
    assert values and unequal == 0


def convolutions(case: Case) -> Iterator[tuple[OnnxNetwork, Images, float]]:
    """Yield each convolution as a network by itself, what it reads, and a step of its output."""
    model = as_onnx(case.network, batch=1)
    graph = model.graph
    writers = {name: node for node in graph.node for name in node.output}
    readers = {name: node for node in graph.node for name in node.input}
    stored = {tensor.name: numpy_helper.to_array(tensor) for tensor in graph.initializer}
    ends = []
    for node in graph.node:
        if node.op_type == "Conv":
            start = writers[writers[node.input[0]].input[0]]
            last = readers[node.output[0]]
            while last.op_type != "QuantizeLinear":
                last = readers[last.output[0]]
            ends.append((start.input[0], last))
    read = values_of(model, case.image, {start for start, _ in ends})
    for start, last in ends:
        x = read[start]
        cut = cut_out(model, start, x.shape, readers[last.output[0]].output[0])
        yield OnnxNetwork(cut, Facts(x.shape[1:], 1)), x, float(stored[last.input[1]])


def values_of(model: onnx.ModelProto, image: Images, names: set[str]) -> dict[str, Images]:
    """Return tensors of a graph for an image, as ONNX Runtime computes its nodes one by one."""
    taken = onnx.ModelProto()
    taken.CopyFrom(model)
    images = graph_input(model).name
    inside = sorted(names - {images})
    taken.graph.output.extend(helper.make_tensor_value_info(name, TensorProto.FLOAT, None) for name in inside)
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    session = onnxruntime.InferenceSession(taken.SerializeToString(), options)
    return {images: image, **dict(zip(inside, session.run(inside, {images: image}), strict=True))}


def cut_out(model: onnx.ModelProto, start: str, shape: tuple[int, ...], end: str) -> onnx.ModelProto:
    """Return the part of a graph that computes one tensor from another, its output flattened to [n, k]."""
    writers = {name: node for node in model.graph.node for name in node.output}
    needed, waiting = [], [end]
    names = {start}
    while waiting:
        name = waiting.pop()
        if name and name not in names:
            names.add(name)
            if name in writers:
                needed.append(writers[name].output[0])
                waiting += writers[name].input
    nodes = [node for node in model.graph.node if node.output[0] in needed]
    stored = [tensor for tensor in model.graph.initializer if tensor.name in names]
    graph = helper.make_graph(
        [*nodes, helper.make_node("Flatten", [end], ["flat"], name="/flat/Flatten")],
        "convolution",
        [helper.make_tensor_value_info(start, TensorProto.FLOAT, shape)],
        [helper.make_tensor_value_info("flat", TensorProto.FLOAT, [shape[0], None])],
        stored,
    )
    return helper.make_model(graph, opset_imports=model.opset_import, ir_version=model.ir_version)
