"""Folders that an earlier version wrote are read and gone on with, and parts written for it run.

Only what users have is named here: the command line, and what ``dlas`` exports.  How the folders were made,
``tests/data/recorded/README.md`` tells.
"""

from __future__ import annotations

import importlib
import json
import lzma
import platform
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import dlas
from tests.fixtures.commands import Command

RECORDED = Path(__file__).parent / "data/recorded"
EXPECTED: dict[str, Any] = json.loads((RECORDED / "expected.json").read_text())
BOUNDS = ["latency_s", "latency_low_s", "latency_high_s"]
PREDICTORS = ["additive", "forest", "boosted"]
SEARCH = [
    *("search", "studies/search.toml", "--estimator", "search/phone", "--maximise"),
    *("search/scores.safetensors", "--within", "latency_s=0.03", "--population", "16"),
    *("--generations", "60", "--winners", "0", "--out", "search/found"),
]
PARTS = {
    "dataset": [["parts/stripes.py:Stripes"]],
    "model": [["parts/chain_net.py:ChainNet", "depth=3"]],
    "compression": [
        ["parts/unchanged.py:Unchanged"],
        ["parts/kernel_pruning.py:KernelPruning", "level=0.5"],
        ["dlas.compression.float16:Float16"],
    ],
    "algorithm": [["parts/filters_last.py:FiltersLast"]],
    "compiler": [["parts/serial.py:Serial"], ["parts/plain_torch.py:PlainTorch"]],
    "hardware": [["parts/steady.py:Steady"], ["parts/portable.toml"]],
    "predictor": [["parts/per_macs.py:PerMacs"]],
}
"""The words of ``dlas check`` behind each axis."""
IMPORTS = [
    ("dlas.stack", "Predictor"),
    ("dlas.compression.pruning.iterative", "IterativePruning"),
    ("dlas.compression.pruning.masked", "MaskedPruning"),
    ("dlas.compilers.programs.tvm", "TvmCompiler"),
    ("dlas.schedules.loops.transformations", "output_block"),
    ("dlas.schedules.loops.numbers", "converted"),
    ("dlas.sparse.compressed.rows", "SparseRows"),
    ("dlas.predictors.fitted.rates", "Rates"),
    ("dlas.networks.torch_model", "TorchModel"),
    ("dlas.hardware.drivers.local", "Local"),
    ("dlas.testing", "check_compression"),
    ("dlas.models", "from_torch"),
]
"""What files of users import today, as CONTRIBUTING and the documents tell them."""

pytestmark = pytest.mark.usefixtures("same_threads_afterwards")


def has_avx2() -> bool:
    """Return whether a recorded library runs on this machine."""
    flags = Path("/proc/cpuinfo")
    return platform.machine() == "x86_64" and flags.exists() and " avx2 " in flags.read_text()


needs_avx2 = pytest.mark.skipif(not has_avx2(), reason="the library is for x86-64 processors with AVX2")


@pytest.fixture
def home(tmp_path: Path, dlas_here: Command) -> Path:
    """Return the current folder, with what was recorded as it was written."""
    shutil.copytree(RECORDED, tmp_path, dirs_exist_ok=True)
    for path in tmp_path.rglob("*.xz"):
        path.with_suffix("").write_bytes(lzma.decompress(path.read_bytes()))
        path.unlink()
    return tmp_path


def done(ran: subprocess.CompletedProcess[str]) -> str:
    """Return what a command printed, in one line, after checking that it ended well."""
    assert ran.returncode == 0, ran.stdout + ran.stderr
    return " ".join(ran.stdout.split())


def check_went_on(folder: Path, before: bytes, points: list[str]) -> pd.DataFrame:
    """Check that the rows that were there still are, and that all points have one; return them."""
    rows = (folder / "results.jsonl").read_bytes()
    assert rows.startswith(before) and len(rows) > len(before)
    frame = dlas.read(folder)
    assert sorted(frame["id"]) == points
    assert set(frame["status"]) == {"ok"}
    return frame


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["status", "sweep"], "sweep: 4 of 8 points have their row"),
        (["table", "sweep"], "weight_pruning with level=0.5"),
        (["compare", "sweep", "--axis", "compiler"], "times as fast"),
        (["report", "sweep"], "report.html"),
        (["show", "sweep", "--fastest"], "onnxruntime"),
        (["table", "explored"], "chain_net"),
        (["table", "own_parts"], "filters_last"),
        (["status", "device/rows"], "rows: "),
    ],
    ids=lambda each: " ".join(each) if isinstance(each, list) else "",
)
def test_commands_read_half_a_folder(words: list[str], said: str, home: Path, dlas_here: Command) -> None:
    assert said in done(dlas_here(*words))


@pytest.mark.slow
def test_an_interrupted_sweep_goes_on(home: Path, dlas_here: Command) -> None:
    before = (home / "sweep/results.jsonl").read_bytes()
    assert before.count(b"\n") == EXPECTED["sweep"]["rows"]
    done(dlas_here("run", "sweep", "--in-process", "--anyway"))
    check_went_on(home / "sweep", before, EXPECTED["sweep"]["ids"])
    assert "sweep: 8 of 8 points have their row" in done(dlas_here("status", "sweep"))
    shown = done(dlas_here("run", "sweep", "--in-process", "--anyway"))
    assert "rows written: none; kept from before: 8" in shown


def test_an_interrupted_exploration_goes_on(home: Path, dlas_here: Command) -> None:
    told = EXPECTED["explored"]
    before = (home / "explored/results.jsonl").read_bytes()
    assert 0 < before.count(b"\n") == told["rows"] < told["statuses"]["ok"]
    words = ["explore", "studies/explored.toml", "--share", "0.5", "--out", "explored", "--in-process"]
    done(dlas_here(*words))
    assert (home / "explored/results.jsonl").read_bytes().startswith(before)
    frame = dlas.read(home / "explored", predictions=True)
    assert frame["status"].value_counts().to_dict() == told["statuses"]
    assert frame["id"].is_unique and frame["latency_s"].gt(0).all()


@pytest.mark.parametrize("name", PREDICTORS)
def test_a_predictor_predicts_what_it_predicted(name: str, home: Path) -> None:
    fitted = dlas.predictor(home / "fitted" / name)
    of_rows = fitted.predict(home / "fitted/rows")
    ahead = dlas.predict(
        home / "fitted" / name, "studies/ahead.toml", anyway=True, steps="inline", progress="silent"
    ).frame
    for frame, told in ((of_rows, "rows"), (ahead, "ahead")):
        expected = EXPECTED["fitted"][told][name]
        assert sorted(frame["id"]) == sorted(expected)
        values = np.array([expected[each] for each in frame["id"]], dtype=float)
        np.testing.assert_allclose(frame[BOUNDS].to_numpy(dtype=float), values, rtol=1e-6)


def test_the_command_predicts_with_a_predictor(home: Path, dlas_here: Command) -> None:
    assert "36 points" in done(dlas_here("predict", "fitted/additive", "fitted/rows"))


def test_an_interrupted_search_goes_on_and_finds_the_same(home: Path, dlas_here: Command) -> None:
    path = home / "search/found/search.json"
    before = json.loads(path.read_text())
    assert 0 < before["generation"] < EXPECTED["search"]["generation"] and not before["finished"]
    text = path.read_text()
    refused = dlas_here(*SEARCH, "--mutation", "0.2")
    assert refused.returncode == 2
    said = " ".join(refused.stderr.split())
    assert "'search/found' holds a search with --mutation 0.1, and this one has --mutation 0.2" in said
    assert path.read_text() == text
    done(dlas_here(*SEARCH))
    found = json.loads(path.read_text())
    assert found["finished"] and found["generation"] == EXPECTED["search"]["generation"]
    for kind in ("population", "front"):
        told = EXPECTED["search"][kind]
        assert [each["content"] for each in found[kind]] == [each["content"] for each in told]
        np.testing.assert_allclose(
            [each["score"] for each in found[kind]], [each["score"] for each in told], rtol=1e-6
        )
    assert "finished" in done(dlas_here(*SEARCH))


def device(**options: Any) -> Any:
    """Do what ``dlas fit-device`` was to do, in this process."""
    asked: dict[str, Any] = {
        "hardware": "parts/steady.py:Steady",
        "model": "parts/drawn_chain.py:DrawnChain",
        "unseen": [{"name": "parts/chain_net.py:ChainNet", "depth": 6}],
        "minutes": 10,
        "steps": "inline",
        "progress": "silent",
    }
    return dlas.fit_device("device", **{**asked, **options})


def test_an_unfinished_predictor_for_a_device_refuses_other_options(home: Path) -> None:
    files = {path: path.read_bytes() for path in (home / "device").rglob("*") if path.is_file()}
    with pytest.raises(
        dlas.errors.InputError, match="holds an unfinished run with `seed=0`, and this one has"
    ):
        device(seed=1)
    assert {path: path.read_bytes() for path in (home / "device").rglob("*") if path.is_file()} == files


@pytest.mark.slow
def test_an_unfinished_predictor_for_a_device_is_finished(home: Path) -> None:
    rows = home / "device/rows/results.jsonl"
    before = rows.read_bytes()
    assert before.count(b"\n") == EXPECTED["device"]["rows"] < 28
    view = device()
    assert rows.read_bytes().startswith(before) and dlas.read(home / "device/rows")["id"].nunique() >= 28
    assert len(view.frame) == 2 and view.frame["latency_s"].gt(0).all()
    assert dlas.predictor(home / "device").predict(home / "device/unseen")["latency_s"].gt(0).all()
    with pytest.raises(dlas.errors.InputError, match="is finished"):
        device()


def images(shape: list[int]) -> Any:
    """Return the images that a program was tried on: as many as do not fill its batches."""
    return np.random.default_rng(0).standard_normal((3, *shape[1:]), np.float32)


def check_outputs(outputs: Any, expected: list[list[float]]) -> None:
    """Compare outputs [n, classes] with those of the version that deployed the program."""
    largest = np.abs(expected).max()
    np.testing.assert_allclose(outputs, np.array(expected), rtol=0, atol=1e-4 * largest)


def test_a_deployed_program_runs(home: Path) -> None:
    told = EXPECTED["deployed"]
    network = dlas.load(home / "deployed")
    assert list(network.shape) == told["shape"]
    check_outputs(network(images(told["shape"])), told["outputs"])
    command = [sys.executable, "-I", "deployed/run.py"]
    ran = subprocess.run(command, cwd=home, capture_output=True, text=True, check=False)
    assert "right on 4 images" in done(ran)


@needs_avx2
def test_a_flexible_program_runs(home: Path) -> None:
    told = EXPECTED["flexible"]
    network: Any = dlas.load(home / "flexible")
    assert list(network.shape) == told["shape"] and network.paths == sorted(told["outputs"])
    given = images(told["shape"])
    for path, expected in told["outputs"].items():
        check_outputs(network.run(given, path=path), expected)
    check_outputs(network.run(given), told["outputs"]["00"])
    fastest = network.run(given, policy="latency", deadline_s=60.0)
    assert any(np.array_equal(fastest, network.run(given, path=path)) for path in network.paths)


@pytest.mark.parametrize(
    ("axis", "words"),
    [(axis, words) for axis, every in PARTS.items() for words in every],
    ids=lambda each: each if isinstance(each, str) else each[0].rpartition("/")[2],
)
def test_parts_of_a_users_own_keep_their_contracts(
    axis: str, words: list[str], home: Path, dlas_here: Command
) -> None:
    said = done(dlas_here("check", axis, *words, "--in-process"))
    kept = "right on 27 of 35 convolutions" if axis == "algorithm" else f"keeps the contract of a {axis}"
    assert f"{' '.join(words)}: {kept}" in said


@pytest.mark.slow
def test_a_study_of_such_parts_goes_on(home: Path, dlas_here: Command) -> None:
    before = (home / "own_parts/results.jsonl").read_bytes()
    done(dlas_here("run", "own_parts", "--in-process", "--anyway"))
    frame = check_went_on(home / "own_parts", before, EXPECTED["own_parts"]["ids"])
    assert frame["error"].lt(1e-4).all()


def test_a_predictor_of_such_a_part_is_evaluated(home: Path, dlas_here: Command) -> None:
    words = ["evaluate", "fitted/rows", "--target", "latency_s", "--hold-out", "model/4"]
    said = done(dlas_here(*words, "--predictor", "parts/per_macs.py:PerMacs"))
    assert "parts/per_macs.py:PerMacs" in said


@pytest.mark.parametrize(("module", "name"), IMPORTS)
def test_what_files_of_users_import_is_there(module: str, name: str) -> None:
    assert callable(getattr(importlib.import_module(module), name))
