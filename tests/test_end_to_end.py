"""Real parts through the whole engine: trained, compiled, checked, timed, and resumed after kills."""

from __future__ import annotations

import random
import time
from multiprocessing.context import ForkServerProcess
from pathlib import Path

import pytest

from dlas.sweep.rows.results import FILE, Row, read_rows
from tests.fixtures import commands

STUDY = """
name = "end-to-end"
[axes]
dataset = ["digits"]
model = [{{ name = "cifar_resnet18", width = 0.125, epochs = {epochs} }}]
compiler = [{compilers}]
hardware = [{{ name = "local_cpu", threads = 1 }}]
[measure]
repeats = 10
seconds = 0.5
"""


def start(folder: Path) -> ForkServerProcess:
    """Run the folder's study in a process of its own."""
    return commands.start(folder, "run", "study.toml", "--out", "out", output=folder / "said")


def finish(folder: Path) -> list[Row]:
    """Run the study to its end."""
    process = start(folder)
    process.join()
    assert process.exitcode == 0, (folder / "said").read_text()
    return list(read_rows(folder / "out"))


def lasting(rows: list[Row]) -> list[tuple[str, ...]]:
    """Return what two runs of a study have in common."""
    kept = ("id", "key", "status", "accuracy", "validation_accuracy", "compiled_accuracy", "error")
    return sorted(tuple(repr(getattr(row, name)) for name in kept) for row in rows)


@pytest.mark.ci
def test_a_small_study(tmp_path: Path) -> None:
    compilers = '"untuned", "onnxruntime", "torch_eager"'
    (tmp_path / "study.toml").write_text(STUDY.format(epochs=1, compilers=compilers))
    rows = finish(tmp_path)
    assert [row.status for row in rows] == ["ok"] * 3, [row.reason for row in rows]
    assert len({row.accuracy for row in rows}) == 1
    for row in rows:
        assert len(row.latency_s) >= 5
        assert row.error is not None and row.error < 1e-4
        assert row.compiled_accuracy is not None and row.compiled_accuracy["images"] == 256
        assert row.peak_memory_bytes is not None and row.peak_memory_bytes > 0
        convolutions = [layer for layer in row.layers if "macs" in layer]
        assert {"conv1", "layer4.1.conv2", "layer2.0.shortcut.0"} <= {layer["name"] for layer in convolutions}
        assert all((layer["latency_s"] or 0) > 0 for layer in convolutions)
    untuned = next(row for row in rows if row.compiler["name"] == "untuned")
    assert untuned.coverage == {"convolutions": 1.0, "macs": 1.0}
    # Batch norms are folded into the packed weights.
    assert untuned.packed_bytes and untuned.model_bytes and 0 < untuned.packed_bytes < untuned.model_bytes
    assert {row.packed_bytes for row in rows if row is not untuned} == {None}
    before = (tmp_path / "out" / FILE).read_bytes()
    assert finish(tmp_path)
    assert (tmp_path / "out" / FILE).read_bytes() == before


@pytest.mark.slow
@pytest.mark.timeout(3000)
def test_killed_ten_times_and_resumed(tmp_path: Path) -> None:
    text = STUDY.format(epochs=3, compilers='"untuned", "onnxruntime", "torch_eager", "torch_compile"')
    folders = tmp_path / "undisturbed", tmp_path / "killed"
    for folder in folders:
        folder.mkdir()
        (folder / "study.toml").write_text(text)
    started = time.monotonic()
    expected = finish(folders[0])
    seconds = time.monotonic() - started
    chance = random.Random(0)
    for _ in range(10):
        process = start(folders[1])
        time.sleep(chance.uniform(0, seconds / 3))
        process.kill()
        process.join()
    found = finish(folders[1])
    assert lasting(found) == lasting(expected)
    assert {row.status for row in found} == {"ok"}
