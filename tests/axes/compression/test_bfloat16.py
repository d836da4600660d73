"""Networks in bfloat16: half as large, rounded where layers read, kept bit for bit."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest
import torch
from onnx import TensorProto, helper, numpy_helper
from torch import nn
from torch.nn import functional

from dlas.axes.compression.bfloat16 import Bfloat16
from dlas.axes.compression.float16 import Float16
from dlas.axes.datasets.random import Random
from dlas.errors import Unsupported
from dlas.networks.exporting import as_onnx
from dlas.networks.onnx.halves import in_single
from dlas.networks.onnx.network import OnnxNetwork, number_type
from dlas.stack import Workspace, from_bfloat16, to_bfloat16
from dlas.sweep.study import parts
from dlas.testing.algorithms import HOST
from tests.fixtures.compressed import NOISE, check_is_kept, compressed
from tests.fixtures.onnx_graphs import small_graph
from tests.fixtures.rounding import ROUNDED
from tests.fixtures.small_network import LAYERS, Small, error, images, network, trained


@pytest.fixture(scope="module")
def half() -> OnnxNetwork:
    return compressed(Bfloat16())


def test_weights_are_half_as_large(half: OnnxNetwork) -> None:
    single = OnnxNetwork(as_onnx(network(), None), network().facts)
    single.count()
    assert number_type(half.model) == "bfloat16" and half.facts.reached == {"bits": 16}
    assert half.facts.macs == single.facts.macs
    assert half.facts.parameters == half.facts.nonzeros == single.facts.parameters
    layers = {
        node.input[1]: numpy_helper.to_array(tensor)
        for node in single.model.graph.node
        for tensor in single.model.graph.initializer
        if node.op_type in ("Conv", "Gemm") and node.input[1] == tensor.name
    }
    assert len(layers) == len(LAYERS) + 2
    assert half.facts.model_bytes is not None and single.facts.model_bytes is not None
    assert single.facts.model_bytes - half.facts.model_bytes == sum(a.nbytes for a in layers.values()) / 2
    stored = {tensor.name: tensor for tensor in half.model.graph.initializer}
    for name, array in layers.items():
        tensor = stored[f"{name}_bfloat16"]
        assert tensor.data_type == TensorProto.BFLOAT16
        found = numpy_helper.to_array(tensor).astype(np.float32)
        np.testing.assert_array_equal(found, from_bfloat16(to_bfloat16(array)))
    for value in (*half.model.graph.input, *half.model.graph.output):
        assert value.type.tensor_type.elem_type == TensorProto.FLOAT, "images and outputs stay float32"


def test_it_is_saved_restored_and_made_again_bit_for_bit(half: OnnxNetwork, tmp_path: Path) -> None:
    check_is_kept(Bfloat16(), half, tmp_path)


def test_the_reference_rounds_what_layers_read(workspace: Workspace) -> None:
    given = OnnxNetwork(small_graph(4), network().facts)
    before = given.model.SerializeToString()
    made = Bfloat16().compress(given, Random(size=8, images=4).load(), workspace)
    assert isinstance(made, OnnxNetwork) and given.model.SerializeToString() == before
    onnx.checker.check_model(made.model, full_check=True)
    x = images(4, (3, 8, 8))
    stored = {tensor.name: numpy_helper.to_array(tensor) for tensor in given.model.graph.initializer}

    def rounded(value: torch.Tensor) -> torch.Tensor:
        return value.bfloat16().float()

    weight, matrix = (rounded(torch.tensor(stored[name])) for name in ("weight", "matrix"))
    means = functional.conv2d(rounded(torch.from_numpy(x)), weight, padding=1).mean((2, 3))
    expected = functional.linear(rounded(means), matrix).numpy()
    assert error(made.reference(x), expected) < 1e-5
    assert error(given.reference(x), expected) > 1e-4, "rounding is seen"
    assert error(OnnxNetwork(in_single(made.model), network().facts).reference(x), expected) > 1e-4


def test_onnx_runtime_casts_as_arrays_are_rounded() -> None:
    nodes = [
        helper.make_node("Cast", ["x"], ["narrow"], to=TensorProto.BFLOAT16),
        helper.make_node("Cast", ["narrow"], ["y"], to=TensorProto.FLOAT),
    ]
    shape = [None, 1, 1, 1]
    ends = [[helper.make_tensor_value_info(name, TensorProto.FLOAT, shape)] for name in "xy"]
    model = helper.make_model(
        helper.make_graph(nodes, "casts", *ends), opset_imports=[helper.make_opsetid("", 17)], ir_version=10
    )
    x = np.array([*ROUNDED], np.uint32).view(np.float32).reshape(-1, 1, 1, 1)
    found = OnnxNetwork(model, network().facts).reference(x)
    np.testing.assert_array_equal(found, from_bfloat16(to_bfloat16(x)))


def test_the_tolerance_takes_another_bfloat16_and_no_other_network(half: OnnxNetwork) -> None:
    x = images(8)
    expected = half.reference(x)
    assert 0 < error(network().reference(x), expected) < Bfloat16.TOLERANCE / 2
    module = network().module.bfloat16()
    with torch.no_grad():
        theirs = module(torch.from_numpy(x).bfloat16()).float().numpy()
    assert 0 < error(theirs, expected) < Bfloat16.TOLERANCE
    other = network()
    assert isinstance(other.module, Small)
    nn.init.zeros_(other.module.first.weight)
    assert error(other.reference(x), expected) > Bfloat16.TOLERANCE


@pytest.mark.slow
def test_digits_are_told_apart_as_well(workspace: Workspace) -> None:
    dense, data = trained()
    made = Bfloat16().compress(dense, data, workspace).facts
    assert dense.facts.accuracy is not None and made.accuracy is not None
    assert dense.facts.accuracy > 0.5, "the network learnt something"
    assert abs(made.accuracy - dense.facts.accuracy) <= 0.02


def test_onnx_runtime_runs_it_and_tells_its_layers(half: OnnxNetwork, tmp_path: Path) -> None:
    compiler = parts.make("compiler", "onnxruntime", {})
    build = compiler.prepare(half, HOST, 2, tmp_path)
    types = {tuple(layer["types"].values()) for layer in build.layers}
    assert types == {("bfloat16", "bfloat16", "float32", "float32")}
    program = compiler.load(tmp_path, lambda: half, HOST)
    x = images(2)
    assert error(program.run(x), half.reference(x)) <= half.tolerance
    assert set(LAYERS) <= {layer["name"] for layer in program.layers(x, 2)}


@pytest.mark.parametrize("name", ["torch_eager", "torch_compile"])
def test_other_compilers_say_that_they_do_not(name: str, half: OnnxNetwork, tmp_path: Path) -> None:
    compiler = parts.make("compiler", name, {})
    with pytest.raises(Unsupported, match="ONNX graph"):
        compiler.build(half, lambda: parts.make("algorithm", "direct", {}), HOST, 1, tmp_path)


def test_it_is_for_networks_in_float32_and_operators_that_cast_to_it(
    half: OnnxNetwork, workspace: Workspace
) -> None:
    with pytest.raises(Unsupported, match="is in bfloat16 already"):
        Bfloat16().compress(half, NOISE, workspace)
    with pytest.raises(Unsupported, match="is in bfloat16 already"):
        Float16().compress(half, NOISE, workspace)
    old = small_graph(4)
    old.opset_import[0].version = 12
    with pytest.raises(Unsupported, match="opset 12; bfloat16 needs 13"):
        Bfloat16().compress(OnnxNetwork(old, network().facts), NOISE, workspace)
