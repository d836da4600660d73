"""Interrupted measurements: what becomes a row, what is kept, and what the next start goes on with."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from dlas.bench.measuring.disturbance import read
from dlas.bench.measuring.observers.processors import Processors
from dlas.bench.measuring.observers.sentinel import Sentinel
from dlas.bench.measuring.observers.watch import Watch
from dlas.bench.measuring.sampling import Instruments, sample
from dlas.bench.measuring.taken import Taken, Turn
from dlas.bench.processes.inline import Inline
from dlas.bench.store.keeping import Altered, keep, kept
from dlas.face.console.progress import SweepProgress
from dlas.stack import Images, Program
from dlas.sweep.engine.point_run import PointRun
from dlas.sweep.engine.session import Session
from dlas.sweep.rows.results import FILE
from dlas.sweep.study.study import Study
from tests.fixtures.engine import rows, run, study_of
from tests.fixtures.package import ROOT
from tests.fixtures.processes import wait_for
from tests.fixtures.stubs import StubHardware
from tests.sweep.engine.test_session import Lines

SLICES, EACH = 4, 3
MEASURE = f"""
[measure]
repeats = {SLICES * EACH}
slices = {SLICES}
minimum = {EACH + 1}
"""


@dataclass(frozen=True)
class StoppingHardware(StubHardware):
    """Samples as devices do, by a fast clock and without a sentinel: the file ``stop`` says after how many
    slices the user interrupts, ``cpu`` which processor it has.
    """

    folder: str = ""

    def describe(self) -> dict[str, Any]:
        """Return what the file tells."""
        return {"cpu": Path(self.folder, "cpu").read_text()}

    def measure(
        self, program: Program, images: Images, settings: Any, turn: Callable[[], None]
    ) -> dict[str, Any]:
        """Sample until it is interrupted."""
        assert isinstance(turn, Turn)

        def keep_and_stop(taken: Taken, keep: Callable[[Taken], None] = turn.keep) -> None:
            keep(taken)
            if str(len(taken.chosen)) == Path(self.folder, "stop").read_text():
                raise KeyboardInterrupt

        watch = Watch({"sentinel": Sentinel(lambda: 0.001), "processors": Processors(read)})
        tools = Instruments(lambda: 10 * time.perf_counter(), lambda seconds: None, watch)
        return sample(program.bind(images), settings, replace(turn, keep=keep_and_stop), tools)


def stopping(folder: Path, measure: str = MEASURE) -> Study:
    """Return a study of one point on a device that can be interrupted."""
    (folder / "cpu").write_text("one")
    options = f'place = "{os.getpid()}-{folder.name}", folder = "{folder}"'
    return study_of(f'hardware = [{{name = "{__name__}:StoppingHardware", {options}}}]\n{measure}')


def interrupt(study: Study, folder: Path, stop: int) -> list[float]:
    """Interrupt the study after so many slices, and return the samples that are kept."""
    (folder / "stop").write_text(str(stop))
    with pytest.raises(KeyboardInterrupt):
        run(study, folder, Inline)
    (file,) = (folder / "out" / "slices").iterdir()
    content = kept(file)
    assert content is not None
    return [seconds for piece in Taken.of(content["taken"]).slices for seconds in piece.samples]


def finish(study: Study, folder: Path, monkeypatch: pytest.MonkeyPatch, **options: Any) -> list[str]:
    """Run the study to its end, and return the lines about points that stay."""
    noted: list[str] = []

    def note(self: SweepProgress, run: PointRun, text: str) -> None:
        noted.append(text)

    monkeypatch.setattr(SweepProgress, "note", note)
    (folder / "stop").write_text("never")
    run(study, folder, Inline, **options)
    assert not (folder / "out" / "slices").exists()
    return noted


@pytest.mark.parametrize("stop", [1, 2, SLICES])
def test_an_interrupted_point_has_a_row_if_its_samples_suffice_and_goes_on_with_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, stop: int
) -> None:
    study = stopping(tmp_path)
    samples = interrupt(study, tmp_path, stop)
    assert len(samples) == stop * EACH
    early = rows(tmp_path) if stop > 1 else []
    assert (tmp_path / "out" / FILE).read_text().count("\n") == len(early)
    for row in early:
        assert (row.status, row.bound, row.latency_s) == ("ok", "interruption", samples)
        assert row.device["cpu"] == "one" and row.seconds["measure"] > 0 and not row.settled
    assert finish(study, tmp_path, monkeypatch) == []
    (row,) = rows(tmp_path)
    assert (row.status, row.bound, len(row.latency_s)) == ("ok", "repeats", SLICES * EACH)
    assert row.latency_s[: len(samples)] == samples
    assert [layer["latency_s"] for layer in row.layers] == [0.001]
    assert row.settled and row.seconds["measure"] > (early[0].seconds["measure"] if early else 0)
    assert run(study, tmp_path, Inline).kept.total() == 1


def test_a_point_that_is_interrupted_twice_keeps_what_both_starts_took(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    study = stopping(tmp_path)
    first = interrupt(study, tmp_path, 1)
    second = interrupt(study, tmp_path, 3)
    assert (len(second), second[:EACH]) == (3 * EACH, first)
    assert finish(study, tmp_path, monkeypatch) == []
    (row,) = rows(tmp_path)
    assert row.latency_s[: 3 * EACH] == second


def another_key(study: Study, folder: Path) -> Study:
    """Return the study with other settings of its measurement."""
    return stopping(folder, MEASURE.replace("minimum = 4", "minimum = 3"))


def another_machine(study: Study, folder: Path) -> Study:
    """Let the device be of another processor."""
    (folder / "cpu").write_text("another")
    return study


def damaged(study: Study, folder: Path) -> Study:
    """Write half of the file."""
    (file,) = (folder / "out" / "slices").iterdir()
    file.write_bytes(file.read_bytes()[: file.stat().st_size // 2])
    return study


def changed(study: Study, folder: Path) -> Study:
    """Make the samples better than they are."""
    (file,) = (folder / "out" / "slices").iterdir()
    content = json.loads(file.read_text())
    content["content"]["taken"]["attempts"][0]["samples"] = [1e-9] * EACH
    file.write_text(json.dumps(content))
    return study


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (another_key, "they are of earlier code or options"),
        (another_machine, "they are of another machine"),
        (damaged, "it is damaged"),
        (changed, "it was changed since it was written"),
    ],
)
def test_slices_of_another_measurement_are_dropped_with_a_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, change: Callable[[Study, Path], Study], reason: str
) -> None:
    study = stopping(tmp_path)
    samples = interrupt(study, tmp_path, 1)
    study = change(study, tmp_path)
    said = f"slices of an interrupted measurement are dropped: {reason}"
    assert finish(study, tmp_path, monkeypatch) == [said]
    (row,) = rows(tmp_path)
    assert (row.status, len(row.latency_s)) == ("ok", SLICES * EACH)
    assert row.latency_s[:EACH] != samples


def test_slices_of_a_repetition_that_is_not_asked_for_again_are_dropped(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    study = stopping(tmp_path)
    finish(study, tmp_path, monkeypatch)
    (tmp_path / "stop").write_text("1")
    with pytest.raises(KeyboardInterrupt):
        run(study, tmp_path, Inline, retry=["ok"])
    (line,) = finish(study, tmp_path, monkeypatch)
    assert line.endswith("its row stands")
    assert len(rows(tmp_path)) == 1


def test_a_killed_writer_leaves_no_part_of_a_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    study = stopping(tmp_path)
    samples = interrupt(study, tmp_path, 2)
    (tmp_path / "out" / "slices" / ".x.json.1.partial").write_text("{")
    finish(study, tmp_path, monkeypatch)
    (row,) = rows(tmp_path)
    assert row.latency_s[: len(samples)] == samples


@pytest.mark.parametrize(("stop", "said"), [("1", "No row yet"), ("2", "Rows so far: {}")])
def test_an_interruption_says_how_many_points_keep_slices(tmp_path: Path, stop: str, said: str) -> None:
    study, display, out = stopping(tmp_path), Lines(), tmp_path / "out"
    (tmp_path / "stop").write_text(stop)
    with (
        Session.open("inline", cache=tmp_path / "cache", display=display) as session,
        pytest.raises(KeyboardInterrupt),
    ):
        session.run(study, out)
    slices = "Slices of 1 point under way are kept"
    assert display.said[-1] == f"interrupted; `dlas run {out}` goes on. {said.format(out)}. {slices}"
    with Session.open("inline", cache=tmp_path / "cache") as session:
        assert len(session.preview(study, out).to_run) == 1, "an interrupted row is to be completed"


def test_what_is_kept_is_read_as_it_was_written_or_not_at_all(tmp_path: Path) -> None:
    path = tmp_path / "kept" / "a.json"
    assert kept(path) is None
    content = {"numbers": [0.1, 1e-300, None], "nested": {"a": [1, {"b": "c"}]}}
    keep(path, content)
    assert kept(path) == content
    for text in ("", "[]", "{}", "[" * 10**5, json.dumps({"content": content, "digest": "0"}), "\xff"):
        path.write_text(text, encoding="latin-1")
        with pytest.raises(Altered):
            kept(path)
    path.unlink()
    path.mkdir()
    with pytest.raises(Altered):
        kept(path)


CALM = "import tests.fixtures.calm; from dlas.face.cli import main; main()"
"""The command line where no measurement is unstable for what the machine did meanwhile."""
STUDY = """
name = "interrupted"
[axes]
dataset = [{name = "random", size = 8, images = 16, classes = 4}]
model = ["tests.fixtures.tiny:TinyModel"]
compiler = ["torch_eager", "onnxruntime", "hand"]
hardware = [{name = "local_cpu", threads = 1}]
[measure]
repeats = 1000000
seconds = 5
layer_repeats = 2
"""


@pytest.mark.slow
@pytest.mark.parametrize(
    ("sent", "slices"), [(signal.SIGINT, 1), (signal.SIGINT, 3), (signal.SIGKILL, 2)], ids=str
)
def test_points_that_take_turns_go_on_after_ctrl_c_and_kills(
    tmp_path: Path, sent: signal.Signals, slices: int
) -> None:
    (tmp_path / "study.toml").write_text(STUDY)
    out = tmp_path / "out"
    command = [sys.executable, "-c", CALM, "run", str(tmp_path / "study.toml"), "--out", str(out)]
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "DLAS_CACHE": str(tmp_path / "cache")}
    environment["TMPDIR"] = str(tmp_path)  # its lock: other tests use the device, too

    def so_far() -> dict[str, list[float]]:
        taken = {}
        for file in (out / "slices").glob("*.json"):
            if content := kept(file):
                pieces = Taken.of(content["taken"]).slices
                taken[file.stem] = [seconds for piece in pieces for seconds in piece.samples]
                counts[file.stem] = len(pieces)
        return taken

    counts: dict[str, int] = {}
    process = subprocess.Popen(
        command,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),  # pytest may ignore it
    )
    try:
        wait_for(
            lambda: process.poll() is not None or (len(so_far()) == 3 and max(counts.values()) >= slices)
        )
        process.send_signal(sent)
        said = process.communicate(timeout=60)[0]
    finally:
        process.kill()
    interrupted = sent == signal.SIGINT
    assert process.returncode == (130 if interrupted else -sent), said
    samples = so_far()
    assert ("Slices of 3 points under way are kept" in " ".join(said.split())) == interrupted
    early = {row.id: row for row in rows(tmp_path)} if (out / FILE).stat().st_size else {}
    enough = {point for point, count in counts.items() if count > 1}
    assert early.keys() == (enough if interrupted else set()), "all of them are steady"
    assert all(row.latency_s == samples[point] for point, row in early.items())
    assert {row.bound for row in early.values()} <= {"interruption"}

    done = subprocess.run(command, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    found = {row.id: row for row in rows(tmp_path)}
    assert found.keys() == samples.keys()
    for point, row in found.items():
        assert (row.status, row.bound) == ("ok", "seconds")
        assert row.latency_s[: len(samples[point])] == samples[point]
        assert len(row.latency_s) > len(samples[point])
        assert len(row.sentinel_s) == 10
    assert not (out / "slices").exists()
    shutil.rmtree(tmp_path / "cache")
