"""Sessions: where and how points are measured, made and planned, and how that ends."""

from __future__ import annotations

import os
import signal
from collections.abc import Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pytest

import dlas
from dlas.bench.processes import server
from dlas.errors import InputError
from dlas.sweep.engine.progress import Display, SilentProgress
from dlas.sweep.engine.session import Session
from dlas.sweep.rows.predictions import PREDICTED
from dlas.sweep.study.study import Study

pytestmark = pytest.mark.usefixtures("same_threads_afterwards")

AXES = {
    "dataset": {"name": "random", "size": 8, "images": 16, "classes": 4},
    "model": "tests.fixtures.tiny:TinyModel",
    "hardware": {"name": "local_cpu", "threads": 1},
    "batch": [1, 3],
}
STUB = "tests.fixtures.stubs:Stub"
STUBS: dict[str, Any] = {
    "dataset": f"{STUB}Dataset",
    "model": {"name": f"{STUB}Model", "factor": [1.0, 2.0]},
    "algorithm": f"{STUB}Algorithm",
    "compiler": [f"{STUB}Compiler", {"name": f"{STUB}Compiler", "trouble": "exception"}],
    "hardware": {"name": f"{STUB}Hardware", "place": "session"},
}


class Lines(Display):
    """Keeps what is said and warned of."""

    def __init__(self) -> None:
        self.said: list[str] = []
        self.totals: list[int] = []

    def say(self, line: str) -> None:
        self.said.append(line)

    def warn(self, line: str) -> None:
        self.said.append(line)

    def sweep(self, total: int, axes: Sequence[str], inline: bool) -> nullcontext[SilentProgress]:
        self.totals.append(total)
        return nullcontext(SilentProgress())


def test_points_are_measured_into_folders_and_their_rows_returned(tmp_path: Path) -> None:
    study = dlas.Study(axes=STUBS, name="shared")
    points = list(study.points())
    display = Lines()
    with Session.open("forked", cache=tmp_path / "cache", display=display) as session:
        runner = session.workers.runner()
        for name, count in (("first", 1), ("second", 2), ("second", 3)):
            rows = session.measure(study, points[:count], tmp_path / name)
            assert [row.id for row in rows] == [point.id for point in points[:count]]
        assert session.workers.runner() is runner
    assert display.said == [] and display.totals == [1, 2, 3]
    assert set(dlas.read(tmp_path / "second")["id"]) == {point.id for point in points[:3]}
    with Session.open("inline", cache=tmp_path / "cache") as again:
        (row,) = again.measure(study, points[:1], tmp_path / "first")
    assert row.id == points[0].id, "kept rows are returned, too"


def test_a_run_says_how_it_began_and_ended(tmp_path: Path) -> None:
    study, display = dlas.Study(axes=STUBS, name="said"), Lines()
    points = list(study.points())[:2]
    with Session.open("inline", cache=tmp_path / "cache", display=display) as session:
        session.check(study, tmp_path / "out", points)
        session.run(study, tmp_path / "out", points)
    first, contained, last = display.said
    assert first == "said: 4 points; 2 points chosen" and "no limit of time or memory holds" in contained
    assert last.startswith("rows written: 1 failed, 1 ok; kept from before: 0; measured: 1.")


@pytest.mark.slow
def test_a_fork_is_made_when_a_session_is_opened_and_never_later(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made: list[bool] = []

    class Noted(server.WorkerServer):
        def __init__(self, spawned: bool = False) -> None:
            made.append(spawned)
            super().__init__(spawned)

    monkeypatch.setattr(server, "WorkerServer", Noted)
    study = dlas.Study(axes=STUBS)
    with Session.open("forked", cache=tmp_path) as session:
        assert made == [False], "before this process can have run kernels"
        session.workers.close()  # as where a sweep was interrupted
        session.measure(study, list(study.points())[:1], tmp_path / "out")
        assert made == [False, True]
    with Session.open("spawned", cache=tmp_path):
        assert made == [False, True], "nothing is started before there is work"


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"retry": "faild"}, "did you mean 'failed'"),
        ({"jobs": 0}, "jobs = 0"),
        ({"jobs": 2, "steps": "inline"}, "one step at a time"),
    ],
)
def test_what_no_session_can_be_is_refused(options: dict[str, Any], said: str) -> None:
    with pytest.raises(InputError, match=said):
        Session.open(**options)


def test_an_interruption_says_what_goes_on_and_ends_the_workers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    study, display = dlas.Study(axes=STUBS), Lines()
    out = tmp_path / "out"
    with Session.open("inline", cache=tmp_path / "cache", display=display) as session:
        runner = session.workers.runner()
        monkeypatch.setattr(type(runner), "events", lambda self, seconds: os.kill(os.getpid(), signal.SIGINT))
        with pytest.raises(KeyboardInterrupt):
            session.run(study, out)
        assert session.workers.runner() is not runner
    assert display.said[-1] == f"interrupted; `dlas run {out}` goes on. No row yet"


def test_an_interruption_before_there_is_a_folder_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    study, display = dlas.Study(axes=STUBS), Lines()

    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(Session, "_results", interrupted)
    with (
        Session.open("inline", cache=tmp_path, display=display) as session,
        pytest.raises(KeyboardInterrupt),
    ):
        session.run(study, tmp_path / "out")
    assert display.said[-1].endswith("goes on. No row yet")


def test_kernels_of_a_study_are_told_at_each_batch_where_its_compilers_know_them(tmp_path: Path) -> None:
    study = Study(axes={**AXES, "compiler": ["onnxruntime", "torch_eager", "torch_compile"]})
    session = Session.open("inline", cache=tmp_path)
    made = session.plan(study, kernels=True)
    told = {(each.row.compiler["name"], each.row.batch): each.kernels for each in made.points}
    assert {*told} == {(name, batch) for name in ("onnxruntime", "torch_eager") for batch in (1, 3)}
    assert {each.row.status for each in made.points} == {PREDICTED}
    assert all(each.row.device for each in made.points)
    for (_, batch), layers in told.items():
        assert {layer["output"][0] for layer in layers} == {batch}
        assert all("latency_s" not in layer and "reads" not in layer for layer in layers)
    fused, single = told["onnxruntime", 1], told["torch_eager", 1]
    assert len(fused) < len(single) and any(layer["fused"] for layer in fused)
    assert made.failed == {"which kernels it runs is known only once they have run": 2}
    some = list(study.points())[:1]
    (only,) = session.plan(study, some).points
    assert only.row.id == some[0].id
    with pytest.raises(InputError, match="no point of the study can be predicted: which kernels it runs"):
        session.plan(Study(axes={**AXES, "compiler": "torch_compile"}), kernels=True).required()
