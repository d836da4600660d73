"""Quantised networks in integers: equal to ONNX Runtime, byte for byte where it computes in integers."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dlas.axes.compression.int8 import Int8
from dlas.errors import Unsupported
from dlas.lowering.lower import lower
from dlas.networks.onnx.network import OnnxNetwork
from dlas.schedules.direct import Direct
from dlas.schedules.spatial_pack import SpatialPack
from dlas.stack import Images
from dlas.sweep.study import parts
from tests.fixtures.compressed import compressed
from tests.fixtures.quantised_graphs import QuantisedGraph, built, drawn
from tests.fixtures.small_network import LAYERS, images

SHAPE4 = (2, 8, 9, 10)


def steps_apart(
    network: OnnxNetwork, x: Images, folder: Path, name: str = "direct", how: str = "untuned"
) -> tuple[float, float]:
    """Return the largest difference from ONNX Runtime's outputs, and the share that differs."""
    expected = network.reference(x)
    _, program = built(network, parts.make("algorithm", name, {}), how, folder, len(x))
    actual = program.run(x)
    assert len(np.unique(expected)) > 10, "hardly anything is computed"
    return float(np.abs(actual - expected).max()), float((actual != expected).mean())


def convolution(
    shape: tuple[int, int, int, int] = SHAPE4,
    k: int = 16,
    size: int = 3,
    read: tuple[float, int] = (0.02, 117),
    written: tuple[float, int] = (0.05, 3),
    scales: tuple[float, float] = (1e-3, 3e-3),
    **attributes: Any,
) -> OnnxNetwork:
    """Return one convolution with a bias between quantised tensors."""
    draw, graph = np.random.default_rng(0), QuantisedGraph(shape)
    groups = attributes.get("group", 1)
    weight = draw.integers(-128, 128, (k, shape[1] // groups, size, size), np.int8)
    scale = draw.uniform(*scales, k).astype(np.float32)
    bias = draw.integers(-3000, 3000, k, np.int32)
    y = graph.op(
        "Conv",
        graph.quantised("x", read),
        graph.integers(weight, scale),
        graph.integers(bias, np.float32(read[0]) * scale),
        **attributes,
    )
    return graph.network(graph.quantised(y, written))


PADS: dict[str, Any] = {"pads": [1, 1, 1, 1]}
CONVOLUTIONS: dict[str, Callable[[], OnnxNetwork]] = {
    "a border that is not zero": lambda: convolution(**PADS),
    "zero points at the least number": lambda: convolution(read=(0.02, 0), written=(0.05, 0), **PADS),
    "zero points at the largest number": lambda: convolution(read=(0.02, 255), written=(0.05, 255), **PADS),
    "strides and groups": lambda: convolution(strides=[2, 1], group=2, pads=[0, 1, 2, 1]),
    "depthwise": lambda: convolution(k=8, group=8, scales=(4e-3, 9e-3), **PADS),
    "1x1": lambda: convolution(size=1, scales=(4e-3, 9e-3)),
    "dilation": lambda: convolution(dilations=[2, 2], **PADS),
    "scales far apart": lambda: convolution(scales=(1e-5, 1e-1), **PADS),
    "the longest sums of VGG-16": lambda: convolution((1, 512, 4, 4), 8, written=(0.7, 120), **PADS),
    # Sums are whole numbers, some of which end on a half in the new scale, which is rounded to even.
    "halves": lambda: convolution(read=(1.0, 2), written=(64.0, 3), scales=(1.0, 1.0), size=1),
}


@pytest.mark.parametrize("name", CONVOLUTIONS)
def test_convolutions_equal_onnx_runtime_byte_for_byte(name: str, tmp_path: Path) -> None:
    made = CONVOLUTIONS[name]()
    shape = tuple(size.dim_value for size in made.model.graph.input[0].type.tensor_type.shape.dim)
    assert steps_apart(made, drawn(shape, spread=2), tmp_path) == (0, 0)


def with_zeros(made: OnnxNetwork) -> OnnxNetwork:
    """Return a convolution with most of its weights set to zero."""
    (weight,) = (t for t in made.model.graph.initializer if len(t.dims) == 4)
    stored = np.frombuffer(weight.raw_data, np.int8).copy()
    stored[np.random.default_rng(1).random(stored.size) < 0.7] = 0
    weight.raw_data = stored.tobytes()
    return made


ALGORITHMS = ("gemm", "spatial_pack", "csr_direct", "bsr_direct", "winograd")


@pytest.mark.parametrize("how", ["untuned", "hand"])
@pytest.mark.parametrize("name", ALGORITHMS)
def test_every_algorithm_computes_the_same_bytes(name: str, how: str, tmp_path: Path) -> None:
    made = with_zeros(convolution(**PADS))
    assert steps_apart(made, drawn(SHAPE4), tmp_path, name, how) == (0, 0)


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("csr_direct", "strides and groups"),
        ("bsr_direct", "dilation"),
        ("csr_gemm", "zero points at the largest number"),
        ("csr_spatial_pack", "1x1"),
        ("csr_direct", "the longest sums of VGG-16"),
    ],
)
def test_sparse_convolutions_equal_onnx_runtime_byte_for_byte(name: str, kind: str, tmp_path: Path) -> None:
    made = with_zeros(CONVOLUTIONS[kind]())
    shape = tuple(size.dim_value for size in made.model.graph.input[0].type.tensor_type.shape.dim)
    assert steps_apart(made, drawn(shape, spread=2), tmp_path, name, "hand") == (0, 0)


def one_of(
    use: Callable[[QuantisedGraph, str], str], written: tuple[float, int] = (0.05, 119)
) -> OnnxNetwork:
    """Return a network of an operator that reads quantised tensors and whose output is quantised."""
    graph = QuantisedGraph(SHAPE4)
    return graph.network(graph.quantised(use(graph, graph.quantised("x", (0.03, 120))), written))


def other(graph: QuantisedGraph, form: tuple[float, int] = (0.011, 131)) -> str:
    """Return a second quantised tensor of the same shape."""
    return graph.quantised(graph.op("Mul", "x", graph.constant(np.float32(-0.37))), form)


OPERATORS: dict[str, Callable[[], OnnxNetwork]] = {
    "sum": lambda: one_of(lambda g, x: g.op("Add", x, other(g))),
    "sum and relu": lambda: one_of(lambda g, x: g.op("Relu", g.op("Add", x, other(g))), (0.02, 0)),
    "product": lambda: one_of(lambda g, x: g.op("Mul", x, other(g)), (0.01, 200)),
    "mean": lambda: one_of(lambda g, x: g.op("GlobalAveragePool", x), (0.004, 119)),
    "average": lambda: one_of(lambda g, x: g.op("AveragePool", x, kernel_shape=[2, 2], strides=[2, 2])),
    "maximum": lambda: one_of(lambda g, x: g.op("MaxPool", x, kernel_shape=[3, 3], pads=[1, 1, 1, 1])),
    "concatenation": lambda: one_of(lambda g, x: g.op("Concat", x, other(g), x, axis=1)),
    "transposition": lambda: one_of(lambda g, x: g.op("Transpose", x, perm=[0, 2, 3, 1]), (0.03, 120)),
    "sigmoid": lambda: one_of(lambda g, x: g.op("Sigmoid", x), (0.003, 0)),
    "another scale": lambda: one_of(lambda g, x: x),
}
APART = {"average": 0.02, "another scale": 1.0}
"""The largest share that differs: ONNX Runtime averages in float32, and makes one quantisation of two."""


@pytest.mark.parametrize("name", OPERATORS)
def test_operators_between_convolutions_are_right(name: str, tmp_path: Path) -> None:
    made = OPERATORS[name]()
    apart, share = steps_apart(made, drawn(SHAPE4, spread=2), tmp_path)
    assert apart <= 0.06 and share <= APART.get(name, 0)


def test_zero_points_of_a_sum_are_rounded_as_by_onnx_runtime(tmp_path: Path) -> None:
    # The first sum of ResNet-50 on noise, for all pairs of integers: some lie between two of its output.
    first, second = (0.05347958, 121), (0.04507458, 136)
    graph = QuantisedGraph((1, 1, 256, 256))
    ratio = graph.constant(np.float32(second[0] / first[0]))
    turned = graph.op("Mul", graph.op("Transpose", "x", perm=[0, 1, 3, 2]), ratio)
    both = graph.op("Add", graph.quantised("x", first), graph.quantised(turned, second))
    made = graph.network(graph.quantised(graph.op("Relu", both), (0.040625926, 0)))
    x = np.broadcast_to((np.arange(256, dtype=np.float32) - 128)[:, None] * np.float32(first[0]), (256, 256))
    assert steps_apart(made, np.ascontiguousarray(x)[None, None], tmp_path) == (0, 0)


def linear(scale: float = 0.05) -> OnnxNetwork:
    """Return a linear layer with a bias behind a mean over planes."""
    draw, graph = np.random.default_rng(0), QuantisedGraph(SHAPE4)
    x = graph.quantised(graph.op("Flatten", graph.quantised("x", (0.03, 120))), (0.03, 120))
    weight = graph.integers(draw.integers(-128, 128, (40, 720), np.int8), draw.uniform(1e-4, 3e-4, 40))
    bias = graph.constant(draw.standard_normal(40).astype(np.float32))
    y = graph.op("Gemm", x, weight, bias, transB=1)
    return graph.network(graph.quantised(y, (scale, 100)))


@pytest.mark.parametrize("how", ["untuned", "hand"])
def test_linear_layers_are_computed_in_integers(how: str, tmp_path: Path) -> None:
    made, x = linear(), drawn(SHAPE4)
    lowered = lower(made, Direct(), 2)
    (kernel,) = lowered.kernels.values()
    assert str(lowered.parameters["linear0"].dtype) == "int8" and kernel.describe()["operator"] == "Gemm"
    # The bias is not quantised: it is rounded to steps of the sums, which ONNX Runtime does not do.
    apart, share = steps_apart(made, x, tmp_path, how=how)
    assert apart <= 0.0501 and share < 0.02


@pytest.fixture(scope="module")
def integer() -> OnnxNetwork:
    return compressed(Int8())


@pytest.mark.parametrize(
    ("name", "how"),
    [
        ("direct", "untuned"),
        ("blocked", "hand"),
        *(pytest.param(name, "hand", marks=pytest.mark.slow) for name in ("gemm", "spatial_pack")),
    ],
)
def test_a_quantised_network_is_right_and_all_in_integers(
    name: str, how: str, integer: OnnxNetwork, tmp_path: Path
) -> None:
    x = images(3)
    build, program = built(integer, parts.make("algorithm", name, {}), how, tmp_path, 3)
    assert build.coverage is not None and build.coverage["integers"] == 1
    layers = {layer["name"]: layer for layer in build.layers if "types" in layer}
    assert set(LAYERS) <= set(layers)
    assert {layer["types"]["accumulator"] for layer in layers.values()} == {"int32"}
    assert {layer["types"]["output"] for layer in layers.values()} == {"uint8"}
    actual, expected = program.run(x), integer.reference(x)
    step = np.diff(np.unique(expected)).min()
    assert np.abs(actual - expected).max() <= 1.01 * step


def test_kernels_read_bytes_and_write_bytes(integer: OnnxNetwork) -> None:
    lowered = lower(integer, SpatialPack(layout="blocked"), 1)
    fused = {layer["name"]: layer["fused"] for layer in lowered.layers}
    assert "Sigmoid" in fused["squeeze"] and fused["second"][-1] == "QuantizeLinear"
    assert fused["second"].count("QuantizeLinear") == 2, "the residual is added in the same kernel"
    wide = [
        (layer["name"], layer["output"])
        for layer in lowered.operators
        if layer["operator"] in ("Cast", "Mul", "Add") and np.prod(layer["output"]) > 100
    ]
    assert not wide, "no kernel only widens what another has written"


def test_what_is_not_quantised_stays_in_float_and_is_counted(tmp_path: Path) -> None:
    graph, draw = QuantisedGraph(SHAPE4), np.random.default_rng(0)
    weights = [draw.integers(-128, 128, (8, 8, 3, 3), np.int8) for _ in range(2)]
    scale = np.full(8, 2e-3, np.float32)
    first = graph.op("Conv", graph.quantised("x", (0.02, 117)), graph.integers(weights[0], scale), **PADS)
    second = graph.op("Conv", graph.op("Relu", first), graph.integers(weights[1], scale), **PADS)
    made, x = graph.network(second), drawn(SHAPE4)
    build, program = built(made, Direct(), "untuned", tmp_path, 2)
    assert build.coverage == {"convolutions": 1, "macs": 1, "integers": 0.5}
    expected = made.reference(x)
    assert np.abs(program.run(x) - expected).max() < 1e-4 * np.abs(expected).max()


def test_scales_that_are_computed_are_refused() -> None:
    graph = QuantisedGraph(SHAPE4)
    scale = graph.op("ReduceMax", graph.op("Abs", "x"), keepdims=0)
    zero = graph.constant(np.uint8(0))
    y = graph.op("DequantizeLinear", graph.op("QuantizeLinear", "x", scale, zero), scale, zero)
    with pytest.raises(Unsupported, match="computed at run time"):
        lower(graph.network(y), Direct(), 2)


def test_integers_written_in_another_form_are_refused() -> None:
    graph = QuantisedGraph(SHAPE4)
    weight, zero = graph.constant(np.ones((4, 8, 3, 3), np.int8)), graph.constant(np.uint8(0))
    scale = graph.constant(np.float32(0.1))
    x = graph.op("QuantizeLinear", "x", scale, zero)
    y = graph.op("Cast", graph.op("ConvInteger", x, weight, zero), to=1)
    with pytest.raises(Unsupported, match="ConvInteger are not read, only those between QuantizeLinear"):
        lower(graph.network(y), Direct(), 2)
