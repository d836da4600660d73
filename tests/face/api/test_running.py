"""``dlas.run``, in a script, a thread and a notebook's kernel."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest

import dlas
from dlas.errors import InputError
from tests.fixtures.package import ROOT

STUB = "tests.fixtures.stubs:Stub"
AXES: dict[str, Any] = {
    "dataset": f"{STUB}Dataset",
    "model": {"name": f"{STUB}Model", "factor": [1.0, 2.0]},
    "algorithm": f"{STUB}Algorithm",
    "compiler": [f"{STUB}Compiler", {"name": f"{STUB}Compiler", "trouble": "exception"}],
    "hardware": {"name": f"{STUB}Hardware", "place": "api"},  # no other test waits for this device
}


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DLAS_CACHE", str(tmp_path / "cache"))


@pytest.mark.slow
def test_a_study_runs_in_any_thread_and_resumes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    handlers = [signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGINT)]
    frames = []
    study = dlas.Study(axes=AXES, name="threaded")
    thread = threading.Thread(target=lambda: frames.append(dlas.run(study, tmp_path / "out")))
    thread.start()
    thread.join()
    (frame,) = frames
    assert frame["status"].tolist().count("ok") == 2 and len(frame) == 4
    assert "threaded: 4 points" in capsys.readouterr().out
    assert handlers == [signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGINT)]
    again = dlas.run(
        {"name": "threaded", "axes": {**AXES, "batch": [2]}}, tmp_path / "out", progress="silent", jobs=2
    )
    assert again["batch"].tolist() == [2] * 4, "only the rows of this study"
    assert capsys.readouterr().out == ""
    retried = dlas.run(study, tmp_path / "out", retry="failed", progress="plain", in_process=True)
    assert set(retried["id"]) == set(frame["id"])
    assert "rows written: 2 failed; kept from before: 2" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"retry": "faild"}, "did you mean 'failed'"),
        ({"progress": "loud"}, "unknown progress 'loud'"),
        ({"jobs": 0}, "jobs = 0"),
        ({"jobs": 2, "in_process": True}, "one step at a time"),
    ],
)
def test_bad_arguments_are_refused_before_anything_is_written(
    tmp_path: Path, options: dict[str, Any], said: str
) -> None:
    with pytest.raises(InputError, match=said):
        dlas.run({"axes": AXES}, tmp_path / "out", **options)
    with pytest.raises(InputError, match="nowhere"):
        dlas.run(tmp_path / "nowhere.toml", tmp_path / "out")
    assert list(tmp_path.iterdir()) == []


INTERRUPTED = """
import _thread, pathlib, signal, threading, time, dlas

signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background process ignores it

def interrupt():
    rows = pathlib.Path("out/results.jsonl")
    while not rows.exists() or len(rows.read_text().splitlines()) < 2:
        time.sleep(0.05)
    _thread.interrupt_main()

threading.Thread(target=interrupt, daemon=True).start()
try:
    dlas.run({{"axes": {axes}}}, "out")
except KeyboardInterrupt:
    print("rows:", len(dlas.read("out")))
"""


@pytest.mark.slow
def test_an_interrupted_sweep_leaves_its_folder_ready_to_go_on(tmp_path: Path) -> None:
    slow = {**AXES, "model": [f"{STUB}Model", {"name": f"{STUB}Model", "seconds": 600.0}]}
    ran = subprocess.run(
        [sys.executable, "-c", INTERRUPTED.format(axes=slow)],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
    )
    assert ran.returncode == 0, ran.stderr
    assert "`dlas run out` goes on" in ran.stdout and "rows: 2" in ran.stdout
    rest = {**slow, "model": f"{STUB}Model"}
    frame = dlas.run({"axes": rest}, tmp_path / "out", progress="silent")
    assert sorted(frame["status"]) == ["failed", "ok"]


def test_a_cluster_without_ray_is_refused_before_anything_is_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)
    study = dlas.Study(axes=AXES, name="clustered")
    with pytest.raises(InputError, match=r"needs Ray, which is not installed; .*pip install 'dlas\[ray\]'"):
        dlas.run(study, tmp_path / "out", ray="auto")
    with pytest.raises(InputError, match="ray = 'local' measures on other machines, and in_process asks for"):
        dlas.run(study, tmp_path / "out", ray="local", in_process=True)
    assert not (tmp_path / "out").exists()


@pytest.mark.slow
def test_a_process_that_has_run_kernels_runs_studies(tmp_path: Path) -> None:
    """Its threads do not survive a fork: torch would wait for them for ever."""
    code = """
import torch, dlas
torch.nn.functional.conv2d(torch.randn(8, 16, 64, 64), torch.randn(16, 16, 3, 3))
axes = {"dataset": {"name": "random", "size": 8, "images": 16, "classes": 4},
        "model": "tests.fixtures.tiny:TinyModel", "compiler": "torch_eager"}
frame = dlas.run(dlas.Study(axes=axes, measure={"repeats": 2, "seconds": 1}, limits={"network": 120}), "out")
print(frame["status"].tolist(), frame["reason"].tolist())
"""
    ran = subprocess.run(
        [sys.executable, "-c", code],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
    )
    assert "['ok']" in ran.stdout, ran.stdout + ran.stderr
