"""Rows taken home: what the folder holds, that it computes the same, and what is refused."""

from __future__ import annotations

import json
import shutil
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import dlas
from dlas.deployment.remaking import searched_schedules
from dlas.deployment.run import CPUINFO, DESCRIPTION, HASHES, check_files
from dlas.errors import InputError
from dlas.networks.convolutions import library_layers
from dlas.sweep.rows.results import FILE
from tests.fixtures import commands
from tests.fixtures.deployed import hash_again, row_of, run, swept
from tests.fixtures.rows import failing, write
from tests.fixtures.rows import row as made_up
from tests.fixtures.tiny import tiny


@pytest.fixture(scope="module")
def sweep(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the sweep."""
    folder = tmp_path_factory.mktemp("sweep")
    swept(folder, '"untuned", "onnxruntime"')
    assert not list((folder / "cache" / "build").iterdir()), "sweeps drop builds"
    return folder


@pytest.fixture(scope="module")
def home(sweep: Path) -> Path:
    """The deployed row of a compiler that builds with TVM."""
    done = commands.dlas(sweep, "deploy", "out", row_of(sweep, "untuned").id, "--to", "new/home")
    assert done.returncode == 0, done.stderr
    assert row_of(sweep, "untuned").id in done.stdout
    assert "right on 64 images" in done.stdout and "note" not in done.stdout
    return sweep / "new" / "home"


def test_a_build_made_again_is_deployed_with_all_that_it_needs(sweep: Path, home: Path) -> None:
    row = row_of(sweep, "untuned")
    names = {"library.so", "parameters.safetensors", "program.json", "program.py", "run.py", "row.json"}
    assert names < {path.name for path in home.iterdir()}
    assert json.loads((home / "row.json").read_text()) == json.loads(json.dumps(asdict(row)))
    text = (home / "README.md").read_text()
    for told in (row.id, "TinyModel(epochs=1)", "3 x 8 x 8", "2 at a time", "95 % interval", "1 thread on"):
        assert told in text
    assert "Noise with a mean that depends on the class" in text, "how images are prepared"
    check_files(home)
    assert {path.name for path in home.parent.iterdir()} == {"home"}, "no temporary folder is left"


def test_a_loaded_network_computes_the_same_for_any_number_of_images(home: Path) -> None:
    network = dlas.load(home)
    assert network.shape == (2, 3, 8, 8) and network.labels == ["0", "1", "2", "3"]
    images, expected = np.load(home / "example.npy"), np.load(home / "example_outputs.npy")
    for count in (1, 2, 3):
        outputs = network(images[:count])
        assert outputs.dtype == np.float32
        np.testing.assert_allclose(outputs, expected[:count], rtol=0, atol=1e-4 * np.abs(expected).max())


@pytest.mark.parametrize(
    ("shape", "kind"),
    [((2, 3, 8, 9), "float32"), ((3, 8, 8), "float32"), ((0, 3, 8, 8), "float32"), ((2, 3, 8, 8), "float64")],
)
def test_other_images_are_refused_in_one_message(home: Path, shape: tuple[int, ...], kind: str) -> None:
    with pytest.raises(ValueError, match=r"must be float32 \[n, 3, 8, 8\].*these are") as refused:
        dlas.load(home)(np.zeros(shape, kind))
    assert kind in str(refused.value) and str(list(shape)) in str(refused.value)


def test_a_runtime_without_schedules_has_lost_none(sweep: Path) -> None:
    profiled = row_of(sweep, "onnxruntime").layers
    assert any(layer["operator"] == "Gemm" and layer.get("macs") for layer in profiled)
    built = library_layers(tiny(), 2)
    assert searched_schedules(built) == searched_schedules(profiled)
    scheduled = row_of(sweep, "untuned").layers
    others = [{**layer, "decisions": {"tile": 8}} for layer in scheduled]
    assert searched_schedules(scheduled) != searched_schedules(others)


@pytest.mark.slow
def test_an_onnx_row_is_deployed_with_its_graph(sweep: Path) -> None:
    done = commands.dlas(sweep, "deploy", "out", row_of(sweep, "onnxruntime").id, "--to", "graph")
    assert done.returncode == 0, done.stderr
    assert "note" not in done.stdout
    assert (sweep / "graph" / "model.onnx").is_file()
    images, expected = (np.load(sweep / "graph" / f"example{name}.npy") for name in ("", "_outputs"))
    outputs = dlas.load(sweep / "graph")(images)
    np.testing.assert_allclose(outputs, expected, rtol=0, atol=1e-4 * np.abs(expected).max())


def test_the_fastest_is_the_fastest_whose_time_can_be_relied_on(
    tmp_path: Path, dlas_here: commands.Command
) -> None:
    unstable = made_up(1.0, compiler="onnxruntime", status="unstable", reason="twice as slow at the end")
    fastest, slower = made_up(2.0, algorithm="gemm"), made_up(3.0)
    write(tmp_path / "rows", [slower, unstable, fastest, failing(compiler="hand")])
    chosen = dlas_here("deploy", "rows", "--fastest", "--to", "home")
    assert chosen.stdout.startswith(fastest.id)
    # It was measured on a machine that does not exist.
    assert chosen.returncode == 2 and f"row {fastest.id} was measured on another machine" in chosen.stderr


def test_what_cannot_be_deployed_is_refused_with_the_reason(
    sweep: Path, tmp_path: Path, dlas_here: commands.Command
) -> None:
    out, row = str(sweep / "out"), row_of(sweep, "untuned")
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "file").touch()
    (tmp_path / "elsewhere").mkdir()
    line = json.dumps(asdict(row)).replace(json.dumps(row.device["cpu"]), '"Other CPU"')
    (tmp_path / "elsewhere" / FILE).write_text(line + "\n")
    failed = row_of(sweep, "untuned", "agx_xavier_cpu").id
    for words, said in (
        ((out, row.id, "--to", "full"), "'full' exists and is not an empty folder"),
        ((out, failed, "--to", "home"), "it is unsupported in step"),
        (("elsewhere", row.id, "--to", "home"), "measured on another machine: cpu (Other CPU there,"),
        ((out, "nowhere", "--to", "home"), row.id),
        ((out, "--to", "home"), "or --fastest"),
        ((out, row.id, "--fastest", "--to", "home"), "or --fastest"),
    ):
        refused = dlas_here("deploy", *words)
        assert refused.returncode == 2, refused.stdout
        assert said in refused.stderr
        assert not (tmp_path / "home").exists()


@pytest.fixture
def copy(home: Path, tmp_path: Path) -> Path:
    """A copy of the deployed row, to change."""
    return Path(shutil.copytree(home, tmp_path / "home"))


def describe_otherwise(folder: Path, **changes: Any) -> None:
    """Change a folder's description, and its hash."""
    path = folder / DESCRIPTION
    path.write_text(json.dumps({**json.loads(path.read_text()), **changes}))
    hash_again(folder)


def test_the_name_of_a_page_is_no_folder(tmp_path: Path) -> None:
    row = made_up(1.0)
    write(tmp_path / "rows", [row])
    with pytest.raises(
        InputError, match=r"page\.html'` is the name of a page, which `dlas\.deploy_page` writes"
    ):
        dlas.deploy(tmp_path / "rows", row.id, to=tmp_path / "page.html")
    assert not (tmp_path / "page.html").exists()


@pytest.mark.slow
def test_the_command_writes_what_a_loaded_network_returns(copy: Path) -> None:
    images = np.random.default_rng(0).standard_normal((5, 3, 8, 8)).astype(np.float32)
    np.save(copy / "images.npy", images)
    words = (copy / "images.npy", "--out", copy / "outputs.npy", "--top", "2", "--time", "3")
    done = run(copy, *words)
    assert done.returncode == 0, done.stderr
    np.testing.assert_array_equal(np.load(copy / "outputs.npy"), dlas.load(copy)(images))
    assert done.stdout.count("image ") == 5 and "ms a batch of 2" in done.stdout
    checked = run(copy)
    assert checked.returncode == 0 and "right on 4 images" in checked.stdout
    for text in (b"no array", b""):
        (copy / "images.npy").write_bytes(text)
        refused = run(copy, copy / "images.npy")
        assert refused.returncode == 2 and "is no .npy file" in refused.stderr


def test_a_processor_without_an_extension_is_refused_before_the_library_is_loaded(copy: Path) -> None:
    (copy / "library.so").write_bytes(b"would crash")
    describe_otherwise(copy, extensions=["sse2", "avx9", "fma9"])
    refused = run(copy)
    assert refused.returncode == 2
    assert f"by {CPUINFO} the processor lacks avx9, fma9" in refused.stderr
    with pytest.raises(ValueError, match="lacks avx9, fma9"):
        dlas.load(copy)
    describe_otherwise(copy, architecture="riscv64")
    refused = run(copy)
    assert refused.returncode == 2 and "compiled for riscv64" in refused.stderr


def test_another_machines_processors_can_be_checked_from_a_copy_of_their_list(copy: Path) -> None:
    needed = json.loads((copy / DESCRIPTION).read_text())["extensions"]
    assert needed, "the target has extensions"
    lines = [f"flags\t: {' '.join(needed)}", f"flags\t: {' '.join(needed[:-1])} other"]
    (copy.parent / "cpuinfo").write_text("\n".join(lines))
    refused = run(copy, "--cpuinfo", copy.parent / "cpuinfo")
    assert refused.returncode == 2
    assert refused.stderr.strip().endswith(f"the processor lacks {needed[-1]}"), "one of its processors does"


def test_a_changed_file_is_refused(copy: Path) -> None:
    (copy / "program.json").write_text("{}")
    refused = run(copy)
    assert refused.returncode == 2 and "program.json has changed since it was deployed" in refused.stderr
    with pytest.raises(ValueError, match="has changed"):
        dlas.load(copy)
    for name in ("../home/program.json", "missing"):
        (copy / HASHES).write_text(f"{64 * '0'}  {name}\n")
        with pytest.raises(ValueError, match="holds no file"):
            dlas.load(copy)
    with pytest.raises(ValueError, match="give the folder that `dlas deploy --to` wrote"):
        dlas.load(copy.parent)


def test_what_is_not_installed_is_named_with_the_command_that_installs_it(copy: Path) -> None:
    for packages, said in (
        ({"no-such-runtime": "1.0"}, "no-such-runtime is not installed; pip install no-such-runtime==1.0"),
        ({"apache-tvm": "0.1"}, "pip install apache-tvm==0.1"),
    ):
        describe_otherwise(copy, packages=packages)
        refused = run(copy)
        assert refused.returncode == 2 and said in refused.stderr
    describe_otherwise(copy, format=99)
    assert "has format 99" in run(copy).stderr
