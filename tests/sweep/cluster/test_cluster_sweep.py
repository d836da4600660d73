"""A study on several stations: rows of a local run, whatever happens to a station."""

from __future__ import annotations

import functools
import io
import time
from collections.abc import Callable, Collection, Sequence
from contextlib import closing
from pathlib import Path

import pytest
from rich.console import Console

from dlas.bench.processes.inline import Inline
from dlas.bench.processes.interface import Runner
from dlas.bench.processes.server import WorkerServer
from dlas.bench.store.cache import Cache
from dlas.errors import Unfinished
from dlas.face.console.progress import SweepProgress
from dlas.sweep.cluster.spread import Gone
from dlas.sweep.cluster.station import Given, Report, Station
from dlas.sweep.cluster.sweep import ClusterSweep, Post
from dlas.sweep.engine.point_run import Summary
from dlas.sweep.engine.sweep import SweepOptions
from dlas.sweep.rows.results import Results
from dlas.sweep.study.study import Study
from tests.fixtures.engine import rows, run, same, study_of

NUMBERS = 'compiler = [{ name = "tests.fixtures.stubs:StubCompiler", number = [0, 1, 2] }]'
STUDY = study_of(
    f'model = [{{ name = "tests.fixtures.stubs:StubModel", factor = [1.0, 2.0, 3.0, 4.0] }}]\n{NUMBERS}'
)
SLOW = study_of(
    'model = [{ name = "tests.fixtures.stubs:StubModel", factor = [1.0, 2.0, 3.0, 4.0], seconds = 0.4 }]'
)
HARDWARE = "tests.fixtures.stubs:StubHardware"


class Near(Post):
    """A station in this process.

    Parameters
    ----------
    reports : int, optional
        It is lost after so many.
    make_runner : callable
        Returns what runs its steps.
    """

    hardware = (HARDWARE,)

    def __init__(
        self, name: str, folder: Path, reports: int | None = None, make_runner: Callable[[], Runner] = Inline
    ) -> None:
        self.name = name
        self._left = reports
        self.station = Station(name, folder / name, 2**30, lambda cache: make_runner())
        self.given: list[str] = []

    def begin(self, study: Study, retry: Collection[str] = ()) -> Near:
        self.station.begin(study.toml(), SweepOptions(retry=retry))
        return self

    def give(self, points: Sequence[Given]) -> None:
        self.given += [str(content["compiler"]) for content, _ in points]
        self.station.give(points)

    def report(self, seen: int) -> Report | None:
        if self._left is not None:
            self._left -= 1
            if self._left < 0:
                self.station.stop()
                raise Gone("its power is off")
        return self.station.report(seen)

    def end(self) -> None:
        self.station.end()

    def stop(self) -> None:
        self.station.stop()


def on(posts: Sequence[Post], folder: Path, study: Study = STUDY, patience_s: float = 60.0) -> Summary:
    """Run a study on stations, of which all are there when somebody asks for the first time."""
    waiting = list(posts)

    def find(known: Collection[str]) -> list[Post]:
        found = list(waiting)
        waiting.clear()
        return found

    progress = SweepProgress(0, Console(file=io.StringIO()), ["model", "compiler"])
    with closing(Results(folder / "out")) as results:
        cache = Cache(folder / "cache")
        return ClusterSweep(study, results, cache, find, progress, patience_s).run()


def test_two_stations_share_a_study_and_its_rows_are_those_of_one_machine(tmp_path: Path) -> None:
    run(STUDY, tmp_path / "one", Inline)
    posts = [Near(name, tmp_path).begin(STUDY) for name in ("a", "b")]
    summary = on(posts, tmp_path / "two")
    assert same(rows(tmp_path / "two")) == same(rows(tmp_path / "one"))
    assert summary.written["ok"] == summary.measured == 12
    assert len((tmp_path / "two" / "out" / "results.jsonl").read_text().splitlines()) == 12
    assert (tmp_path / "two" / "out" / "logs").exists()


def test_current_rows_are_kept_and_those_to_be_run_again_are_run(tmp_path: Path) -> None:
    on([Near("a", tmp_path).begin(STUDY)], tmp_path)
    summary = on([Near("b", tmp_path).begin(STUDY)], tmp_path)
    assert summary.kept["ok"] == 12 and not summary.written
    summary = on([Near("c", tmp_path).begin(STUDY, retry=["ok"])], tmp_path)
    assert summary.written["ok"] == 12 and not summary.kept


def test_points_of_a_lost_station_are_measured_by_the_other(tmp_path: Path) -> None:
    run(STUDY, tmp_path / "one", Inline)
    posts = [Near("a", tmp_path, reports=2).begin(STUDY), Near("b", tmp_path).begin(STUDY)]
    on(posts, tmp_path / "two")
    assert posts[0].given, "it had points"
    assert same(rows(tmp_path / "two")) == same(rows(tmp_path / "one"))


def test_a_device_that_stays_away_ends_the_sweep_and_it_goes_on_later(tmp_path: Path) -> None:
    with pytest.raises(Unfinished, match=f"no machine with {HARDWARE} has come back for 0 s.*run the study"):
        on([Near("a", tmp_path, reports=5).begin(SLOW)], tmp_path, SLOW, patience_s=0.0)
    before = len(rows(tmp_path))
    summary = on([Near("b", tmp_path).begin(SLOW)], tmp_path, SLOW)
    assert summary.kept["ok"] == before < 4 and summary.written["ok"] == 4 - before


def test_a_point_that_its_machine_was_lost_with_time_and_again_fails(tmp_path: Path) -> None:
    hanging = study_of('compiler = [{ name = "tests.fixtures.stubs:StubCompiler", trouble = "hang" }]')

    class Dies(Near):
        def report(self, seen: int) -> Report | None:
            report = super().report(seen)
            if report is not None and any(point.running for point in report.points):
                self._left = 0
            return report

    apart = functools.partial(WorkerServer, spawned=True)
    posts = [Dies(name, tmp_path, make_runner=apart).begin(hanging) for name in ("a", "b", "c")]
    started = time.monotonic()
    on(posts, tmp_path, hanging)
    (row,) = rows(tmp_path)
    assert row.status == "failed" and "was lost 3 times while it ran: its power is off" in (row.reason or "")
    assert time.monotonic() - started < 60


def test_an_interrupted_sweep_stops_its_stations(tmp_path: Path) -> None:
    class Interrupts(Near):
        def report(self, seen: int) -> Report | None:
            if seen > 1 and not self.station._stopped.is_set():
                raise KeyboardInterrupt
            return super().report(seen)

    post = Interrupts("a", tmp_path).begin(SLOW)
    with pytest.raises(KeyboardInterrupt):
        on([post], tmp_path, SLOW)
    assert post.station.report(0).over and post.station.report(0).error == "interrupted"
    assert 0 < len(rows(tmp_path)) < 4


def test_what_ends_a_station_s_sweep_is_told(tmp_path: Path) -> None:
    def broken(cache: Cache) -> Runner:
        raise OSError("no room")

    post = Near("a", tmp_path)
    post.station = Station("a", tmp_path / "a", 2**30, broken)
    with pytest.raises(Unfinished, match="a: OSError: no room; run the study again"):
        on([post.begin(STUDY)], tmp_path)


def test_a_station_refuses_what_it_cannot_run(tmp_path: Path) -> None:
    station = Near("a", tmp_path).station
    assert station.refusal(STUDY.toml()) == ""
    too_many = 'name = "s"\n[axes]\nhardware = [{ name = "local_cpu", threads = 4096 }]\n'
    assert "threads = 4096" in station.refusal(too_many)
