"""Whole networks, at the size that they are made for, through every dense algorithm of the DLAS paper."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import onnx
import pytest
import tvm
from torch import nn
from tvm import relax

from dlas.axes.compilers.programs.tvm import build_module
from dlas.lowering.graph.graph import Graph
from dlas.lowering.graph.importing import import_network
from dlas.lowering.graph.simplify import simplify
from dlas.lowering.lower import lower_graph, schedule
from dlas.networks.exporting import as_onnx
from dlas.networks.torch.network import TorchNetwork
from dlas.stack import Images, Network, Workspace
from dlas.sweep.study import parts
from tests.fixtures.small_network import error

# One network through one algorithm takes seconds to a minute, more on a busy machine.
pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]

NETWORKS = [
    "resnet18", "resnet50", "mobilenet_v2", "efficientnet_b0", "densenet161", "squeezenet1_1", "mnasnet1_0",
    "googlenet", "alexnet", "shufflenet_v2_x1_0", "inception_v3", "vgg16", "resnet18 from a file",
]  # fmt: skip


@dataclass(frozen=True)
class Given:
    """A network, imported once for every algorithm.

    Parameters
    ----------
    network : Network
    graph : Graph
    convolutions : set of str
        Names of the torch modules that are 2-D convolutions.
    images : ndarray, [1, 3, size, size]
    outputs : ndarray, [1, classes]
        What the network's reference function makes of them.
    """

    network: Network
    graph: Graph
    convolutions: set[str]
    images: Images
    outputs: Images


@pytest.fixture(scope="module", params=NETWORKS)
def given(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Given]:
    name, folder = request.param.partition(" ")[0], tmp_path_factory.mktemp("work")
    size = 299 if name == "inception_v3" else 224
    data = parts.make("dataset", "random", {"size": size, "images": 4}).load()
    workspace = Workspace(0, folder, say=lambda line: None)
    network: Network = parts.make("model", name, {}).build(data, workspace)
    assert isinstance(network, TorchNetwork)
    convolutions = {name for name, layer in network.module.named_modules() if isinstance(layer, nn.Conv2d)}
    if request.param.endswith("file"):
        onnx.save(as_onnx(network, 1), folder / "network.onnx")
        network = parts.make("model", "onnx", {"path": str(folder / "network.onnx")}).build(data, workspace)
    images, _ = data.test[[0, 1]]
    outputs = np.concatenate([network.reference(images[:1]), network.reference(images[1:])])
    assert error(outputs[:1], outputs[1:]) > 1e-3, "what does not depend on the image shows no mistakes"
    yield Given(network, simplify(import_network(network, 1)), convolutions, images[:1], outputs[:1])
    gc.collect()


@pytest.mark.parametrize("algorithm", ["direct", "gemm", "spatial_pack"])
def test_networks_are_right_and_every_convolution_is_accounted_for(given: Given, algorithm: str) -> None:
    target = parts.make("hardware", "local_cpu", {}).target()
    lowered = lower_graph(given.graph, parts.make("algorithm", algorithm, {}))
    machine = relax.VirtualMachine(build_module(schedule(lowered, target), target, lowered.module), tvm.cpu())
    arguments = [tvm.runtime.tensor(array) for array in (given.images, *lowered.parameters.values())]
    assert error(machine["main"](*arguments).numpy(), given.outputs) <= 1e-4

    assert {layer["name"] for layer in lowered.layers} == given.convolutions
    assert len(lowered.layers) == len(given.convolutions)
    assert [layer["kernel"] for layer in lowered.operators if layer["operator"] is None] == []
    for layer in lowered.layers:
        assert (layer["algorithm"] == algorithm) == (layer["declined"] is None)
        assert layer["declined"] is None or layer["declined"].strip()
    taken = [layer for layer in lowered.layers if layer["algorithm"] == algorithm]
    assert lowered.coverage is not None
    assert lowered.coverage["convolutions"] == len(taken) / len(given.convolutions)
