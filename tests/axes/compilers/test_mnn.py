"""MNN: right within its own tolerance, with the times of its operators; optional."""

from __future__ import annotations

import sys
from importlib import metadata
from pathlib import Path

import numpy as np
import onnx
import pytest

from dlas.axes.compilers.mnn import TOLERANCE
from dlas.axes.compilers.programs.mnn import PIECES, converter, timed
from dlas.axes.compilers.programs.onnx_graph import MODEL
from dlas.errors import MissingPackage, Unsupported
from dlas.networks.onnx.network import OnnxNetwork
from dlas.stack import Layer, Runtime, Target
from dlas.sweep.study import parts
from dlas.testing.algorithms import HOST
from tests.fixtures.onnx_graphs import small_graph
from tests.fixtures.optional import make_or_skip
from tests.fixtures.small_network import LAYERS, error, images, network

KNOWN: dict[str, Layer] = {
    "/a/Conv_output_0": {"name": "a", "operator": "Conv", "groups": 1},
    "outputs": {"name": "/fc/Gemm", "operator": "Gemm"},
}


@pytest.fixture
def mnn() -> Runtime:
    """The part, where its package is installed."""
    runtime: Runtime = make_or_skip("compiler", "mnn")
    return runtime


@pytest.mark.parametrize("threads", [1, 2])
def test_it_computes_what_the_network_does(mnn: Runtime, threads: int, tmp_path: Path) -> None:
    small, x = network(), images(3)
    build = mnn.prepare(small, HOST, 3, tmp_path)
    program = mnn.load(tmp_path, lambda: small, Target(HOST.description, threads))
    assert error(program.run(x), small.reference(x)) <= 2e-5
    assert [layer["name"] for layer in build.layers] == LAYERS and build.tolerance == TOLERANCE


def test_an_inference_starts_from_its_images_each_time(mnn: Runtime, tmp_path: Path) -> None:
    small, x = network(), images(2)
    mnn.prepare(small, HOST, 2, tmp_path)
    program = mnn.load(tmp_path, lambda: small, HOST)
    first = program.run(x)
    run = program.bind(x)
    assert [run() for _ in range(3)] == [0, 0, 0]
    np.testing.assert_array_equal(program.run(x), first)
    assert error(program.run(x + 1), small.reference(x + 1)) <= 2e-5


def test_its_layers_are_timed_by_their_names(mnn: Runtime, tmp_path: Path) -> None:
    mnn.prepare(network(), HOST, 2, tmp_path)
    times = mnn.load(tmp_path, network, HOST).layers(images(2), 3)
    assert times is not None
    named = {layer["name"]: layer for layer in times}
    assert set(LAYERS) <= set(named) and len(named) == len(times)
    assert all(0 < (layer["latency_s"] or 0) < 1 for layer in times)
    assert {named[name]["operator"] for name in LAYERS} == {"Conv"}
    assert all(layer.get("operator") for layer in times)


def test_a_convolution_that_is_not_found_leaves_all_times_out() -> None:
    seconds, kinds = {"/a/Conv_output_0": 1e-3, "odd": 2e-3}, {"odd": "Raster"}
    assert timed(KNOWN, seconds, kinds) == [
        {"name": "a", "operator": "Conv", "groups": 1, "latency_s": 1e-3},
        {"name": "odd", "operator": "Raster", "latency_s": 2e-3},
    ]
    assert timed(KNOWN, {"odd": 2e-3}, kinds) is None
    assert timed({}, {"odd": 2e-3}, kinds) is None


@pytest.mark.parametrize(
    ("operator", "written"),
    [
        ("/g/Conv_output_0__group__1_raster_0", "/g/Conv_output_0"),
        ("outputs__matmul_converted", "outputs"),
        ("/a_raster_0/Conv_output_0", "/a_raster_0/Conv_output_0"),
    ],
)
def test_pieces_of_an_operator_have_its_name(operator: str, written: str) -> None:
    assert PIECES.sub("", operator) == written


def test_the_converter_is_none_of_the_scripts_that_install_packages() -> None:
    command = converter()
    assert command[0] == sys.executable and "MNN.tools" not in " ".join(command)


def test_a_conversion_imports_nothing_of_the_tools(mnn: Runtime, tmp_path: Path) -> None:
    mnn.prepare(network(), HOST, 1, tmp_path)
    mnn.load(tmp_path, network, HOST)
    assert not [name for name in sys.modules if name.startswith(("MNN.tools", "aliyun"))]


def test_what_it_lacks_is_unsupported_and_says_what(mnn: Runtime, tmp_path: Path) -> None:
    model = small_graph(1)
    model.graph.node[1].op_type, model.graph.node[1].domain = "Unheard", "of"
    model.opset_import.append(onnx.helper.make_opsetid("of", 1))
    given = OnnxNetwork(model, network().facts)
    with pytest.raises(Unsupported, match=r"MNN does not convert this network: .*Unheard"):
        mnn.prepare(given, HOST, 1, tmp_path)
    with pytest.raises(Unsupported, match="CPUs only, not on opencl"):
        mnn.prepare(network(), Target({"kind": "opencl"}, 1), 1, tmp_path)


def test_without_its_package_it_says_how_to_install_it(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def version(name: str) -> str:
        raise metadata.PackageNotFoundError(name)

    monkeypatch.setattr(metadata, "version", version)
    with pytest.raises(MissingPackage, match=r"the package mnn is not installed; pip install 'dlas\[mnn\]'"):
        parts.make("compiler", "mnn", {}).prepare(network(), HOST, 1, tmp_path)
    assert not (tmp_path / MODEL).exists()
