"""ncnn: right, in single precision, with the threads it is given; optional."""

from __future__ import annotations

from importlib import metadata
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from dlas.axes.compilers.programs import ncnn as programs
from dlas.axes.compilers.programs.ncnn import FLOAT32, PARAMETERS, NcnnProgram
from dlas.errors import MissingPackage, Unsupported
from dlas.stack import Runtime, Target
from dlas.sweep.study import parts
from dlas.testing.algorithms import HOST
from tests.fixtures.optional import make_or_skip
from tests.fixtures.small_network import LAYERS, SHAPE, error, images, network


@pytest.fixture
def ncnn() -> Runtime:
    """The part, where its packages are installed."""
    runtime: Runtime = make_or_skip("compiler", "ncnn")
    return runtime


def test_it_computes_each_image_of_a_batch(ncnn: Runtime, tmp_path: Path) -> None:
    small, x = network(), images(3)
    build = ncnn.prepare(small, HOST, 3, tmp_path)
    program = ncnn.load(tmp_path, lambda: small, HOST)
    assert error(program.run(x), small.reference(x)) <= 2e-5
    assert [layer["name"] for layer in build.layers] == LAYERS
    assert {layer["n"] for layer in build.layers} == {3} and build.tolerance == 0
    assert program.layers(x, 2) is None


def test_images_whose_channels_ncnn_aligns_are_right(ncnn: Runtime, tmp_path: Path) -> None:
    small = network(shape=(3, 21, 23))
    ncnn.prepare(small, HOST, 1, tmp_path)
    x = images(1, (3, 21, 23))
    program = ncnn.load(tmp_path, lambda: small, HOST)
    run = program.bind(x)
    run()
    assert error(program.run(x), small.reference(x)) <= 2e-5


@pytest.mark.parametrize("threads", [1, 2])
def test_it_computes_in_float32_with_its_threads(ncnn: Runtime, threads: int, tmp_path: Path) -> None:
    ncnn.prepare(network(), HOST, 1, tmp_path)
    program = ncnn.load(tmp_path, network, Target(HOST.description, threads))
    assert isinstance(program, NcnnProgram)
    options = program.net.opt
    assert options.num_threads == threads
    assert {name: getattr(options, name) for name in FLOAT32} == FLOAT32


def test_operators_without_a_layer_are_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    known = SimpleNamespace(create_layer=lambda kind: None if "." in kind else kind)
    monkeypatch.setattr(programs, "imported", lambda: known)
    lines = ["7767517", "4 4", "Input in0 0 1 in0", "Tensor.reshape a 1 1 in0 1", "Tensor.slice b 1 1 1 2"]
    (tmp_path / PARAMETERS).write_text("\n".join([*lines, "ReLU c 1 1 2 out0", ""]))
    with pytest.raises(Unsupported, match=r"^ncnn has no layer for Tensor\.reshape, Tensor\.slice$"):
        programs.refuse_unknown_layers(tmp_path / PARAMETERS)


def test_gpus_are_refused(ncnn: Runtime, tmp_path: Path) -> None:
    with pytest.raises(Unsupported, match="CPUs only, not on opencl"):
        ncnn.prepare(network(), Target({"kind": "opencl"}, 1), 1, tmp_path)


@pytest.mark.parametrize("absent", ["ncnn", "pnnx"])
def test_without_one_of_its_packages_it_says_how_to_install_it(
    absent: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def version(name: str) -> str:
        if name == absent:
            raise metadata.PackageNotFoundError(name)
        return "1"

    monkeypatch.setattr(metadata, "version", version)
    with pytest.raises(
        MissingPackage, match=rf"the package {absent} is not installed; pip install 'dlas\[{absent}\]'"
    ):
        parts.make("compiler", "ncnn", {}).prepare(network(), HOST, 1, tmp_path)


def test_outputs_outlive_the_program(ncnn: Runtime, tmp_path: Path) -> None:
    small = network()
    ncnn.prepare(small, HOST, 1, tmp_path)
    first = ncnn.load(tmp_path, lambda: small, HOST).run(images(1))
    for _ in range(3):
        ncnn.load(tmp_path, lambda: small, HOST).run(np.zeros((1, *SHAPE), np.float32))
    assert error(first, small.reference(images(1))) <= 2e-5
