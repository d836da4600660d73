"""Networks in float16: half as large, nearly the same, kept bit for bit."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest
import torch
from onnx import TensorProto, numpy_helper
from torch import nn

from dlas.axes.compression.float16 import Float16
from dlas.axes.datasets.random import Random
from dlas.errors import Unsupported
from dlas.networks.exporting import as_onnx
from dlas.networks.onnx.network import OnnxNetwork
from dlas.networks.torch.network import TorchNetwork
from dlas.stack import Workspace
from dlas.sweep.study import parts
from dlas.testing.algorithms import HOST
from tests.fixtures.compressed import NOISE, check_is_kept, compressed
from tests.fixtures.onnx_graphs import small_graph
from tests.fixtures.small_network import LAYERS, Small, error, images, network, trained


@pytest.fixture(scope="module")
def half() -> OnnxNetwork:
    return compressed(Float16())


def test_what_is_stored_is_half_as_large(half: OnnxNetwork) -> None:
    dense = network()
    dense.count()
    single = OnnxNetwork(as_onnx(dense, None), network().facts)
    single.count()
    assert half.facts.parameters is not None and dense.facts.parameters is not None
    assert half.facts.reached == {"bits": 16}
    assert half.facts.macs == single.facts.macs == dense.facts.macs
    assert half.facts.parameters == half.facts.nonzeros == single.facts.parameters
    norms = dense.facts.parameters - half.facts.parameters
    assert norms == 2 * 16, "two batch norms became biases"
    shapes = sum(
        numpy_helper.to_array(tensor).nbytes
        for tensor in half.model.graph.initializer
        if tensor.data_type == TensorProto.INT64
    )
    assert half.facts.model_bytes - shapes == (single.facts.model_bytes - shapes) / 2
    kinds = {tensor.data_type for tensor in half.model.graph.initializer} - {TensorProto.INT64}
    assert kinds == {TensorProto.FLOAT16}
    for value in (*half.model.graph.input, *half.model.graph.output):
        assert value.type.tensor_type.elem_type == TensorProto.FLOAT, "images and outputs stay float32"


def test_it_is_saved_restored_and_made_again_bit_for_bit(half: OnnxNetwork, tmp_path: Path) -> None:
    check_is_kept(Float16(), half, tmp_path)
    x = images(3)
    np.testing.assert_array_equal(half.reference(x)[:1], half.reference(x[:1]))


def test_the_tolerance_takes_another_float16_and_no_other_network(half: OnnxNetwork) -> None:
    x = images(8)
    expected = half.reference(x)
    assert 0 < error(network().reference(x), expected) < 1e-3
    module = network().module.half()
    with torch.no_grad():
        theirs = module(torch.from_numpy(x).half()).float().numpy()
    assert 0 < error(theirs, expected) < Float16.TOLERANCE
    other = network()
    assert isinstance(other.module, Small)
    nn.init.zeros_(other.module.first.weight)
    assert error(other.reference(x), expected) > Float16.TOLERANCE


def test_small_weights_stay_other_than_zero_and_large_ones_finite(workspace: Workspace) -> None:
    conv = nn.Conv2d(3, 2, 1, bias=False)
    module = nn.Sequential(conv, nn.AdaptiveAvgPool2d(1), nn.Flatten())
    with torch.no_grad():
        conv.weight.copy_(torch.tensor([[1e-12, 0, 1], [-1e9, 1, -1e-12]])[:, :, None, None])
    made = Float16().compress(TorchNetwork(module, network().facts), NOISE, workspace)
    assert isinstance(made, OnnxNetwork)
    weight = numpy_helper.to_array(made.model.graph.initializer[0]).astype(np.float32)
    np.testing.assert_array_equal(np.sign(weight[:, :, 0, 0]), [[1, 0, 1], [-1, 1, -1]])
    assert np.isfinite(weight).all() and made.facts.nonzeros == 5


@pytest.mark.slow
def test_digits_are_told_apart_as_well(workspace: Workspace) -> None:
    dense, data = trained()
    made = Float16().compress(dense, data, workspace).facts
    assert dense.facts.accuracy is not None and made.accuracy is not None
    assert dense.facts.accuracy > 0.5, "the network learnt something"
    assert abs(made.accuracy - dense.facts.accuracy) <= 0.01
    assert made.validation_accuracy is not None and made.test_images == len(data.test)


@pytest.mark.slow
def test_there_is_no_accuracy_without_labels(half: OnnxNetwork, workspace: Workspace) -> None:
    assert half.facts.accuracy is None
    dense, _ = trained()
    made = Float16().compress(dense, Random(images=4).load(), workspace).facts
    assert made.accuracy is None and made.validation_accuracy is None


@pytest.mark.parametrize("batch", ["n", 3])
def test_a_graph_from_a_file_keeps_its_batch(batch: int | str, workspace: Workspace) -> None:
    data = Random(size=8, images=4).load()
    given = OnnxNetwork(small_graph(batch), network().facts)
    before = given.model.SerializeToString()
    made = Float16().compress(given, data, workspace)
    assert isinstance(made, OnnxNetwork)
    assert made.batch == (3 if batch == 3 else None)
    x = images(4, (3, 8, 8))
    assert error(made.reference(x), given.reference(x)) < 1e-3
    onnx.checker.check_model(made.model)
    assert given.model.SerializeToString() == before


def test_onnx_runtime_runs_it_and_tells_its_layers(half: OnnxNetwork, tmp_path: Path) -> None:
    compiler = parts.make("compiler", "onnxruntime", {})
    build = compiler.prepare(half, HOST, 2, tmp_path)
    assert {kind for layer in build.layers for kind in layer["types"].values()} == {"float16"}
    program = compiler.load(tmp_path, lambda: half, HOST)
    x = images(2)
    assert error(program.run(x), half.reference(x)) <= 1e-5
    assert set(LAYERS) <= {layer["name"] for layer in program.layers(x, 2)}


@pytest.mark.parametrize("name", ["torch_eager", "torch_compile"])
def test_other_compilers_say_that_they_do_not(name: str, half: OnnxNetwork, tmp_path: Path) -> None:
    compiler = parts.make("compiler", name, {})
    with pytest.raises(Unsupported, match="ONNX graph"):
        compiler.build(half, lambda: parts.make("algorithm", "direct", {}), HOST, 1, tmp_path)


def test_it_is_not_done_twice(half: OnnxNetwork, workspace: Workspace) -> None:
    with pytest.raises(Unsupported, match="is in float16 already"):
        Float16().compress(half, NOISE, workspace)
