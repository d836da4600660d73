"""Deployed rows away from here: in an environment without torch, and in torch without this package."""

from __future__ import annotations

import subprocess
import venv
from importlib import metadata
from pathlib import Path

import numpy as np
import pytest

import dlas
from dlas.sweep.rows.results import read_rows
from tests.fixtures import commands
from tests.fixtures.deployed import row_of, run, swept

pytestmark = pytest.mark.slow
PACKAGES = ("apache-tvm", "apache-tvm-ffi", "numpy", "ml_dtypes", "typing_extensions")
"""What pip installs for the requirements of a deployed row of TVM."""
TORCH = '"torch_eager", { name = "torch_eager", channels_last = true }, "torch_compile"'


@pytest.fixture(scope="module")
def sweep(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the sweep."""
    folder = tmp_path_factory.mktemp("sweep")
    swept(folder, f'"untuned", "drifting:Drifting", {TORCH}')
    return folder


def fresh_environment(folder: Path) -> Path:
    """Return the Python of a new environment with nothing but TVM, NumPy and what they need."""
    venv.create(folder, with_pip=False, symlinks=True)
    (site,) = folder.glob("lib/python*/site-packages")
    for name in PACKAGES:
        files = metadata.files(name)
        assert files
        for top in {file.parts[0] for file in files} - {"..", "__pycache__"}:
            (site / top).symlink_to(Path(str(metadata.distribution(name).locate_file(top))))
    return folder / "bin" / "python"


def test_a_fresh_environment_with_tvm_and_numpy_computes_the_same(sweep: Path, tmp_path: Path) -> None:
    home = tmp_path / "home"
    done = commands.dlas(sweep, "deploy", "out", row_of(sweep, "untuned").id, "--to", str(home))
    assert done.returncode == 0, done.stderr
    python = fresh_environment(tmp_path / "fresh")
    for absent in ("torch", "dlas", "onnx", "safetensors"):
        assert subprocess.run([python, "-I", "-c", f"import {absent}"], capture_output=True).returncode == 1
    images = np.random.default_rng(1).standard_normal((7, 3, 8, 8)).astype(np.float32)
    np.save(home / "images.npy", images)
    done = run(home, home / "images.npy", "--out", home / "outputs.npy", python=python)
    assert done.returncode == 0, done.stderr
    np.testing.assert_array_equal(np.load(home / "outputs.npy"), dlas.load(home)(images))
    missing = run(home, "--cpuinfo", "/dev/null", python=python)
    assert missing.returncode == 2 and "lacks" in missing.stderr


def test_torch_rows_are_deployed_as_exported_programs(sweep: Path, tmp_path: Path) -> None:
    rows = [row for row in read_rows(sweep / "out") if str(row.compiler["name"]).startswith("torch_")]
    assert len(rows) == 3
    for row in rows:
        to = tmp_path / row.id
        done = commands.dlas(sweep, "deploy", "out", row.id, "--to", str(to))
        assert done.returncode == 0, done.stderr
        checked = run(to, "--out", tmp_path / "outputs.npy")
        assert checked.returncode == 0 and "right on 4 images" in checked.stdout, checked.stderr
        assert "torch" in (to / "requirements.txt").read_text()
        assert ("C++ compiler" in (to / "README.md").read_text()) == (row.compiler["name"] == "torch_compile")


def test_nothing_is_left_of_a_program_that_is_wrong(sweep: Path) -> None:
    before = set(sweep.iterdir()) | {sweep / "drifted"}
    (sweep / "drifted").touch()
    done = commands.dlas(sweep, "deploy", "out", row_of(sweep, "drifting:Drifting").id, "--to", "bad/home")
    assert done.returncode == 1
    assert "the deployed program is wrong: differs from the network by" in done.stderr
    assert set(sweep.iterdir()) - {sweep / "said"} == before - {sweep / "said"}
