"""Weights that an ONNX graph computes from constants."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
import torch
from onnx import TensorProto, helper, numpy_helper
from torch import nn

from dlas.axes.models.onnx import Onnx
from dlas.errors import InputError
from dlas.lowering.lower import lower
from dlas.networks.onnx.counting import count_graph
from dlas.networks.onnx.folding import fold_constants, fold_shapes
from dlas.networks.onnx.network import OnnxNetwork
from dlas.schedules.direct import Direct
from dlas.stack import Facts, Workspace
from dlas.testing.algorithms import HOST
from tests.fixtures.data import noise
from tests.fixtures.lowering import run

DRAW = np.random.default_rng(0)
IMAGES = DRAW.standard_normal((2, 3, 8, 8)).astype(np.float32)
FACTS = Facts((3, 8, 8), 4)
MOST = 2**20


def graph(nodes: list[onnx.NodeProto], stored: dict[str, Any]) -> onnx.ModelProto:
    """Return nodes that compute "weight" [4, 3, 3, 3], and behind them a convolution and a global average."""
    network = [
        helper.make_node("Conv", ["x", "weight"], ["a"], name="first", pads=[1, 1, 1, 1]),
        helper.make_node("GlobalAveragePool", ["a"], ["b"]),
        helper.make_node("Flatten", ["b"], ["y"]),
    ]
    inside = helper.make_graph(
        [*nodes, *network],
        "computed",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [2, 3, 8, 8])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, [2, 4])],
        [numpy_helper.from_array(np.asarray(array), name) for name, array in stored.items()],
    )
    return helper.make_model(inside, opset_imports=[helper.make_opsetid("", 17)], ir_version=10)


WEIGHT = DRAW.standard_normal((4, 3, 3, 3)).astype(np.float32)
CONSTANT = helper.make_node("Constant", [], ["weight"], value=numpy_helper.from_array(WEIGHT))
HALF = helper.make_tensor("", TensorProto.FLOAT, [1], [0.5])
COMPUTED = {
    "a constant": graph([CONSTANT], {}),
    "a tensor filled with one number": graph(
        [
            helper.make_node(
                "ConstantOfShape", ["shape"], ["weight"], value=helper.make_tensor("", 1, [1], [0.5])
            )
        ],
        {"shape": np.array(WEIGHT.shape)},
    ),
    "behind identity, cast, transpose and reshape": graph(
        [
            helper.make_node("Identity", ["stored"], ["same"]),
            helper.make_node("Cast", ["same"], ["single"], to=TensorProto.FLOAT),
            helper.make_node("Transpose", ["single"], ["turned"], perm=[1, 0]),
            helper.make_node("Constant", [], ["shape"], value_ints=list(WEIGHT.shape)),
            helper.make_node("Reshape", ["turned", "shape"], ["weight"]),
        ],
        {"stored": WEIGHT.reshape(4, 27).T.astype(np.float64)},
    ),
    "scaled by its norm": graph(
        [
            helper.make_node("ReduceL2", ["stored"], ["norm"], axes=[1, 2, 3]),
            helper.make_node("Div", ["stored", "norm"], ["weight"]),
        ],
        {"stored": WEIGHT},
    ),
}


@pytest.mark.parametrize("model", COMPUTED.values(), ids=COMPUTED.keys())
def test_computed_weights_become_stored_ones(model: onnx.ModelProto, tmp_path: Path) -> None:
    folded = fold_constants(model, MOST)
    assert [node.op_type for node in folded.graph.node] == ["Conv", "GlobalAveragePool", "Flatten"]
    assert [tensor.name for tensor in folded.graph.initializer] == ["weight"]
    onnx.checker.check_model(folded, full_check=True)
    counts = count_graph(folded)
    assert (counts.parameters, counts.model_bytes, counts.macs) == (108, 432, 108 * 64)
    expected = OnnxNetwork(model, FACTS).reference(IMAGES)
    np.testing.assert_allclose(OnnxNetwork(folded, FACTS).reference(IMAGES), expected, rtol=1e-6)
    lowered = lower(OnnxNetwork(folded, FACTS), Direct(), 2, HOST)
    assert [layer["name"] for layer in lowered.layers if "macs" in layer] == ["first"]
    np.testing.assert_allclose(run(lowered, tmp_path, IMAGES), expected, rtol=1e-4, atol=1e-5)


class Normalised(nn.Module):
    """A convolution whose weight is standardised at each call, and one whose weight two layers share."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.second, self.third = (nn.Conv2d(3, 3, 3, padding=1, bias=False) for _ in range(3))
        self.third.weight = self.second.weight

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        weight = self.first.weight
        centred = weight - weight.mean((1, 2, 3), keepdim=True)
        x = nn.functional.conv2d(x, centred / centred.flatten(1).norm(dim=1).reshape(-1, 1, 1, 1), padding=1)
        y: torch.Tensor = self.third(self.second(x))
        return y.mean((2, 3))


@pytest.mark.filterwarnings("ignore")
def test_what_torch_exports_without_folding_is_folded(tmp_path: Path) -> None:
    module = Normalised().eval()
    path = tmp_path / "model.onnx"
    torch.onnx.export(
        module,
        (torch.zeros(1, 3, 8, 8),),
        str(path),
        dynamo=False,
        do_constant_folding=False,
        opset_version=17,
    )
    written = onnx.load(path)
    assert {"Constant", "Sub", "Div"} <= {node.op_type for node in written.graph.node}
    network = Onnx(str(path)).build(noise(8, classes=3), Workspace(0, tmp_path, say=print))
    assert isinstance(network, OnnxNetwork)
    assert {node.op_type for node in network.model.graph.node} <= {"Conv", "ReduceMean"}
    assert network.facts.macs == 3 * 81 * 64 and network.facts.parameters == 2 * 81
    with torch.no_grad():
        expected = module(torch.from_numpy(IMAGES)).numpy()
    np.testing.assert_allclose(network.reference(IMAGES), expected, rtol=1e-4, atol=1e-5)


class Shuffled(nn.Module):
    """Half of the channels through a convolution, and then every other one from either half."""

    def __init__(self) -> None:
        super().__init__()
        self.widen, self.inner = nn.Conv2d(3, 8, 1), nn.Conv2d(4, 4, 3, padding=1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        first, second = self.widen(x).chunk(2, dim=1)
        joined = torch.cat([first, self.inner(second)], dim=1)
        batch, channels, height, width = joined.shape
        turned = joined.view(batch, 2, channels // 2, height, width).transpose(1, 2)
        return turned.reshape(batch, channels, height, width).mean((2, 3))


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("batch", [1, 2])
def test_sizes_that_follow_from_the_batch_are_stored_once_it_is_known(batch: int, tmp_path: Path) -> None:
    module, path, images = Shuffled().eval(), tmp_path / "model.onnx", IMAGES[:batch]
    torch.onnx.export(
        module,
        (torch.zeros(1, 3, 8, 8),),
        str(path),
        dynamo=False,
        opset_version=17,
        input_names=["images"],
        dynamic_axes={"images": {0: "batch"}},
    )
    network = Onnx(str(path)).build(noise(8, classes=8), Workspace(0, tmp_path, say=print))
    assert isinstance(network, OnnxNetwork)
    assert {"Shape", "Gather", "Div"} <= {node.op_type for node in network.model.graph.node}
    folded = fold_shapes(network.model, (batch, 3, 8, 8), MOST)
    kinds = {node.op_type for node in folded.graph.node}
    assert kinds == {"Conv", "Slice", "Concat", "Reshape", "Transpose", "ReduceMean"}
    with torch.no_grad():
        expected = module(torch.from_numpy(images)).numpy()
    np.testing.assert_allclose(OnnxNetwork(folded, FACTS).reference(images), expected, rtol=1e-4, atol=1e-5)
    lowered = lower(network, Direct(), batch, HOST)
    np.testing.assert_allclose(run(lowered, tmp_path, images), expected, rtol=1e-4, atol=1e-5)


def test_a_part_of_a_shape_is_stored_and_an_unknown_one_stays() -> None:
    nodes = [
        helper.make_node("Shape", ["x"], ["size"], start=2, end=3),
        helper.make_node("NonZero", ["x"], ["places"]),
        helper.make_node("Shape", ["places"], ["count"]),
        helper.make_node("Concat", ["size", "count"], ["weight"], axis=0),
    ]
    model = graph(nodes, {})
    folded = fold_shapes(model, (2, 3, 8, 8), MOST)
    assert [numpy_helper.to_array(each).tolist() for each in folded.graph.initializer] == [[8]]
    assert [node.op_type for node in folded.graph.node][:3] == ["NonZero", "Shape", "Concat"]


def test_what_depends_on_the_input_or_on_chance_and_types_of_layers_stay() -> None:
    scale, zero = np.float32(0.1), np.int8(0)
    nodes = [
        helper.make_node("DequantizeLinear", ["stored", "scale", "zero"], ["half"]),
        helper.make_node("RandomNormalLike", ["half"], ["noise"]),
        helper.make_node("Add", ["half", "noise"], ["weight"]),
    ]
    model = graph(nodes, {"stored": np.ones((4, 3, 3, 3), np.int8), "scale": scale, "zero": zero})
    assert fold_constants(model, MOST) == model


@pytest.mark.parametrize(
    "nodes",
    [
        [helper.make_node("ConstantOfShape", ["shape"], ["weight"])],
        [
            helper.make_node("ConstantOfShape", ["small"], ["d0"]),
            *(helper.make_node("Concat", [f"d{n}"] * 2, [f"d{n + 1}"], axis=0) for n in range(40)),
            helper.make_node("Identity", ["d40"], ["weight"]),
        ],
    ],
    ids=["at once", "by doubling"],
)
def test_constants_that_would_fill_the_memory_are_refused(
    nodes: list[onnx.NodeProto], tmp_path: Path
) -> None:
    stored = {"shape": np.array([10**6, 10**6, 3, 3]), "small": np.array([1024, 1024])}
    with pytest.raises(ValueError, match=r"bytes of constants: too large"):
        fold_constants(graph(nodes, stored), MOST * 16)
    path = tmp_path / "large.onnx"
    path.write_bytes(graph(nodes[:1], stored).SerializeToString())
    if nodes[0].input[0] == "shape":
        with pytest.raises(InputError, match=r"large.onnx.*makes 36,000,000,000,000 bytes of constants"):
            Onnx(str(path)).verify()
