"""OpenVINO: right, in single precision, with the threads it is given; optional."""

from __future__ import annotations

import json
import sys
from importlib import metadata
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from torch import nn

from dlas.axes.compilers.openvino import TOLERANCES
from dlas.axes.compilers.programs import openvino as programs
from dlas.axes.compilers.programs.onnx_graph import MODEL
from dlas.axes.compression.bfloat16 import Bfloat16
from dlas.axes.compression.float16 import Float16
from dlas.axes.compression.int8 import Int8
from dlas.axes.datasets.random import Random
from dlas.bench.measuring import doctor
from dlas.bench.store import fingerprint
from dlas.errors import MissingPackage, Unsupported
from dlas.networks.onnx.network import OnnxNetwork
from dlas.stack import MeasureSettings, Network, Runtime, Target
from dlas.sweep.engine.planning import Planner
from dlas.sweep.rows.results import read_rows
from dlas.sweep.study import parts
from dlas.sweep.study.point import Choice, Point
from dlas.testing.algorithms import HOST
from dlas.testing.networks import workspace
from tests.fixtures.commands import Command
from tests.fixtures.onnx_graphs import small_graph
from tests.fixtures.optional import make_or_skip
from tests.fixtures.small_network import LAYERS, SHAPE, error, images, network

STUDY = """
name = "s"
[axes]
compiler = ["openvino"]
"""


@pytest.fixture
def openvino() -> Runtime:
    """The part, where its package is installed."""
    runtime: Runtime = make_or_skip("compiler", "openvino")
    return runtime


@pytest.fixture
def absent(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make the package look as if it were not installed."""
    found = metadata.version

    def version(name: str) -> str:
        if name == "openvino":
            raise metadata.PackageNotFoundError(name)
        return found(name)

    monkeypatch.setattr(metadata, "version", version)


@pytest.fixture
def in_bfloat16() -> Runtime:
    """The part in bfloat16, on processors that have instructions for it."""
    runtime: Runtime = make_or_skip("compiler", "openvino", precision="bfloat16")
    if "BF16" not in programs.capabilities():
        pytest.skip("this processor has no instructions for bfloat16")
    return runtime


def loaded(openvino: Runtime, given: Network, folder: Path, batch: int = 2, threads: int = 1) -> Any:
    """Return the program that the runtime makes of a network."""
    target = Target(HOST.description, threads)
    openvino.prepare(given, target, batch, folder)
    return openvino.load(folder, lambda: given, target)


def test_it_computes_what_the_network_does_and_times_its_layers(openvino: Runtime, tmp_path: Path) -> None:
    small, x = network(), images(2)
    program = loaded(openvino, small, tmp_path)
    assert error(program.run(x), small.reference(x)) <= 1e-5
    times = program.layers(x, 3)
    assert set(LAYERS) <= {layer["name"] for layer in times}
    assert all(0 < layer["latency_s"] < 1 for layer in times)
    layers = openvino.prepare(small, HOST, 2, tmp_path).layers
    assert [layer["name"] for layer in layers] == LAYERS
    assert {layer["algorithm"] for layer in layers} == {"library"}


def test_graphs_are_compiled_in_single_precision_for_one_inference_at_a_time(
    openvino: Runtime, tmp_path: Path
) -> None:
    for threads in (1, 2):
        compiled = loaded(openvino, network(), tmp_path, threads=threads).compiled
        names = ("INFERENCE_PRECISION_HINT", "INFERENCE_NUM_THREADS", "NUM_STREAMS", "ENABLE_CPU_PINNING")
        found = [str(compiled.get_property(name)) for name in (*names, "PERF_COUNT")]
        assert found == ["<Type: 'float32'>", str(threads), "1", "False", "NO"]


def test_in_bfloat16_convolutions_round_what_they_read_and_rows_say_so(
    in_bfloat16: Runtime, tmp_path: Path
) -> None:
    small, x = network(), images(2)
    program = loaded(in_bfloat16, small, tmp_path)
    assert str(program.compiled.get_property("INFERENCE_PRECISION_HINT")) == "<Type: 'bfloat16'>"
    build = in_bfloat16.prepare(small, HOST, 2, tmp_path)
    assert 1e-4 < error(program.run(x), small.reference(x)) < build.tolerance
    types = [
        {**layer["types"], "output": ""}
        for layer in (*build.layers, *program.layers(x, 1))
        if layer["name"] in LAYERS
    ]
    rounded = {"input": "bfloat16", "weight": "bfloat16", "accumulator": "float32", "output": ""}
    assert types == [rounded] * 2 * len(LAYERS)


def test_a_network_in_bfloat16_runs_in_it_without_casts(in_bfloat16: Runtime, tmp_path: Path) -> None:
    data = Random(size=SHAPE[1], images=8).load()
    made, x = Bfloat16().compress(network(), data, workspace(tmp_path / "work")), images(2)
    compiler = parts.make("compiler", "openvino", {})
    program = loaded(compiler, made, tmp_path / "build")
    assert error(program.run(x), made.reference(x)) <= made.tolerance
    nodes = onnx.load(tmp_path / "build" / MODEL).graph.node
    assert {each.i for node in nodes if node.op_type == "Cast" for each in node.attribute} == {
        1
    }  # to float32
    layers = {layer["name"]: layer for layer in program.layers(x, 1)}
    assert {layers[name]["types"]["input"] for name in LAYERS} == {"bfloat16"}
    assert not any(layer.get("operator") == "Cast" for layer in layers.values())


def test_processors_without_bfloat16_are_refused_and_float32_is_not(
    openvino: Runtime, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(programs, "capabilities", lambda: ["FP32", "INT8"])
    rounding = parts.make("compiler", "openvino", {"precision": "bfloat16"})
    with pytest.raises(Unsupported, match="in float32 on this one, which has FP32, INT8"):
        rounding.prepare(network(), HOST, 1, tmp_path)
    assert not (tmp_path / MODEL).exists()
    openvino.prepare(network(), HOST, 1, tmp_path)


def test_a_row_in_bfloat16_may_deviate_by_more_than_its_network(
    in_bfloat16: Runtime, dlas_here: Command, tmp_path: Path
) -> None:
    (tmp_path / "study.toml").write_text(
        'name = "s"\n[axes]\ndataset = [{ name = "random", images = 4 }]\n'
        'model = [{ name = "cifar_mobilenet_v1", width = 0.25, recipe = "none" }]\n'
        'compiler = [{ name = "openvino", precision = "bfloat16" }]\n[measure]\nseconds = 0.1\n'
    )
    ran = dlas_here("run", "study.toml", "--out", "out")
    assert ran.returncode == 0, ran.stderr
    (row,) = read_rows(tmp_path / "out")
    assert row.status == "ok" and row.error is not None and 1e-4 < row.error < TOLERANCES["bfloat16"]
    deployed = dlas_here("deploy", "out", "--fastest", "--to", "home")
    assert deployed.returncode == 0, deployed.stderr
    described = json.loads((tmp_path / "home/deployed.json").read_text())
    assert described["options"]["properties"]["INFERENCE_PRECISION_HINT"] == "bf16"
    assert described["tolerance"] == TOLERANCES["bfloat16"]


def test_a_bound_inference_reads_the_images_in_place_and_copies_no_output(
    openvino: Runtime, tmp_path: Path
) -> None:
    small, x = network(), images(2)
    run = loaded(openvino, small, tmp_path).bind(x)
    first = run()[0]
    expected = small.reference(x)
    assert error(first, expected) <= 1e-5 and not first.flags.owndata
    x[:] = images(2) * 0.5
    assert error(run()[0], small.reference(x)) <= 1e-5
    assert error(first, expected) > 1e-3, "the output was copied"


def test_a_bound_inference_keeps_its_images(openvino: Runtime, tmp_path: Path) -> None:
    program = loaded(openvino, network(), tmp_path)
    expected = program.run(images(2))
    run = program.bind(images(2).copy())
    others = [np.full_like(images(2), np.nan) for _ in range(8)]  # in the place of images that were freed
    assert np.array_equal(next(iter(run().values())), expected), len(others)


def test_its_layers_tell_their_operators_and_what_is_fused(openvino: Runtime, tmp_path: Path) -> None:
    layers = loaded(openvino, network(), tmp_path).layers(images(2), 2)
    convolutions = [layer for layer in layers if layer.get("operator") == "Conv"]
    assert {layer["name"] for layer in convolutions} >= set(LAYERS)
    assert any("Relu" in layer["fused"] for layer in convolutions)
    assert all(layer["inputs"] and layer["output"][0] == len(images(2)) for layer in convolutions)
    assert all(layer.get("operator") for layer in layers)


def test_outputs_of_a_run_stay_as_they_are(openvino: Runtime, tmp_path: Path) -> None:
    program, x = loaded(openvino, network(), tmp_path), images(2)
    first = program.run(x)
    before = first.copy()
    program.run(x + 1)
    np.testing.assert_array_equal(first, before)


def test_timing_the_layers_leaves_the_program_as_it_was(openvino: Runtime, tmp_path: Path) -> None:
    program, x = loaded(openvino, network(), tmp_path), images(2)
    run, compiled = program.bind(x), program.compiled
    before = np.array(run()[0])
    program.layers(x, 2)
    np.testing.assert_array_equal(run()[0], before)
    assert program.compiled is compiled and compiled.get_property("PERF_COUNT") == "NO"


def test_telemetry_is_not_imported(openvino: Runtime, tmp_path: Path) -> None:
    loaded(openvino, network(), tmp_path)
    assert "openvino" in sys.modules
    assert not [name for name in sys.modules if name.startswith("openvino_telemetry")]


@pytest.mark.parametrize("smaller", [Int8(images=8), Float16()], ids=["int8", "float16"])
def test_networks_in_smaller_numbers_run_and_tell_their_layers(
    openvino: Runtime, smaller: Int8 | Float16, tmp_path: Path
) -> None:
    data = Random(size=SHAPE[1], images=8).load()
    made = smaller.compress(network(), data, workspace(tmp_path / "work"))
    program, x = loaded(openvino, made, tmp_path / "build"), images(2)
    # Without VNNI, sums of bytes in 16 bits may saturate.
    assert error(program.run(x), made.reference(x)) <= 3 * made.tolerance
    assert set(LAYERS) <= {layer["name"] for layer in program.layers(x, 1)}


def test_graphs_without_names_of_nodes_tell_their_layers(openvino: Runtime, tmp_path: Path) -> None:
    graph = OnnxNetwork(small_graph(1), network().facts)
    build = openvino.prepare(graph, HOST, 1, tmp_path)
    program = openvino.load(tmp_path, lambda: graph, HOST)
    times = program.layers(images(1, (3, 8, 8)), 1)
    assert times is not None and {layer["name"] for layer in build.layers} <= {
        layer["name"] for layer in times
    }


def test_a_layer_that_ends_the_network_or_runs_twice_has_its_name(openvino: Runtime, tmp_path: Path) -> None:
    class Twice(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.first, self.again = nn.Conv2d(3, 8, 3, padding=1), nn.Conv2d(8, 8, 3, padding=1)

        def forward(self, x: Any) -> Any:
            return self.again(self.again(self.first(x)).relu())

    twice = network(Twice(), (3, 8, 8))
    build = openvino.prepare(twice, HOST, 1, tmp_path)
    program = openvino.load(tmp_path, lambda: twice, HOST)
    names = [layer["name"] for layer in build.layers]
    times = program.layers(images(1, (3, 8, 8)), 1)
    assert names == ["first", "again", "again#2"]
    assert times is not None and set(names) <= {layer["name"] for layer in times}


def test_what_openvino_lacks_is_unsupported_and_says_what(openvino: Runtime, tmp_path: Path) -> None:
    model = small_graph(1)
    model.graph.node[1].op_type, model.graph.node[1].domain = "Unheard", "of"
    model.opset_import.append(onnx.helper.make_opsetid("of", 1))
    given = OnnxNetwork(model, network().facts)
    with pytest.raises(Unsupported, match=r"OpenVINO does not compile this network: .*Unheard"):
        openvino.prepare(given, HOST, 1, tmp_path)
    with pytest.raises(Unsupported, match="CPUs only, not on opencl"):
        openvino.prepare(network(), Target({"kind": "opencl"}, 1), 1, tmp_path)


def test_its_version_is_in_the_keys_of_its_own_builds_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    def keys(compiler: str) -> dict[str, str]:
        names = ("digits", "cifar_resnet18", "none", "library", compiler, "local_cpu")
        dataset, model, compression, algorithm, chosen, hardware = map(Choice, names)
        point = Point(dataset, model, compression, algorithm, chosen, hardware, batch=1, seed=0)
        return Planner(MeasureSettings(), Path("cache")).plan(point).artifacts()

    before = {name: keys(name) for name in ("openvino", "onnxruntime")}
    found = fingerprint.versions
    monkeypatch.setattr(
        fingerprint,
        "versions",
        lambda names: found(names) | {"openvino": "1"} if "openvino" in names else found(names),
    )
    assert keys("openvino")["build"] != before["openvino"]["build"]
    assert keys("openvino")["network"] == before["openvino"]["network"]
    assert keys("onnxruntime") == before["onnxruntime"]


def test_without_its_package_a_study_ends_before_anything_is_written(
    absent: None, dlas_here: Command, tmp_path: Path
) -> None:
    (tmp_path / "study.toml").write_text(STUDY)
    ran = dlas_here("run", "study.toml", "--out", "out")
    assert ran.returncode == 2
    said = " ".join(ran.stderr.split())
    assert "compiler openvino: the package openvino is not installed; pip install 'dlas[openvino]'" in said
    assert [path.name for path in tmp_path.iterdir()] == ["study.toml"]
    assert "openvino" in dlas_here("list", "compiler").stdout


def test_without_its_package_the_part_and_the_doctor_say_so(
    absent: None, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    with pytest.raises(MissingPackage, match="the package openvino is not installed"):
        parts.make("compiler", "openvino", {}).prepare(network(), HOST, 1, tmp_path)
    assert not (tmp_path / MODEL).exists()
    monkeypatch.setattr(doctor, "version", lambda name: None)
    check = doctor.extras()
    assert (check.status, check.finding) == ("warn", "openvino, ncnn, mnn not installed")
    assert "pip install 'dlas[openvino,ncnn,mnn]'" in check.advice
