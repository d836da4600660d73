"""Which points of a comparison take turns on a device."""

from __future__ import annotations

import itertools
import os
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import pytest

from dlas.bench.processes.events import ChildEnd, Event, Task
from dlas.bench.processes.interface import Runner
from dlas.bench.processes.server import WorkerServer
from dlas.bench.store.cache import Cache
from dlas.face.console.progress import SweepProgress
from dlas.sweep.engine.planning import Planner, Step
from dlas.sweep.engine.point_run import PointRun
from dlas.sweep.engine.turns import Turns, lock_device
from dlas.sweep.study.study import Study
from tests.fixtures.engine import rows, run, study_of
from tests.fixtures.stubs import StubHardware

NETWORKS = """
compression = ["tests.fixtures.stubs:StubCompression"{more}]
algorithm = [{{ name = "tests.fixtures.stubs:StubAlgorithm", number = [1, 2, 3] }}]
hardware = [{{ name = "tests.fixtures.stubs:StubHardware", place = [{devices}] }}]
"""
TWO = 'compiler = ["tests.fixtures.stubs:StubCompiler", "tests.fixtures.stubs:StubLibrary"]'


class Watched(WorkerServer):
    """Notes which measurements are under way together, from the first to the last of them."""

    def __init__(self) -> None:
        super().__init__()
        self.together: list[list[dict[str, Any]]] = []
        self._measuring: set[int] = set()

    def start(self, tasks: Sequence[Task], **options: Any) -> int:
        job = super().start(tasks, **options)
        if tasks[0].function.endswith("measure:run"):
            if not self._measuring:
                self.together.append([])
            self._measuring.add(job)
            self.together[-1].append(tasks[0].arguments["content"])
        return job

    def events(self, seconds: float) -> list[Event]:
        events = super().events(seconds)
        self._measuring -= {event.job for event in events if isinstance(event, ChildEnd)}
        return events


@pytest.mark.parametrize(
    ("most", "devices", "sizes"),
    [
        (7, '"here"', [6, 3]),  # two networks of three points, then the one that is left
        pytest.param(6, '"here"', [6, 3], marks=pytest.mark.ci),
        pytest.param(5, '"here"', [3, 3, 3], marks=pytest.mark.ci),
        (2, '"here"', [2, 1, 2, 1, 2, 1]),  # a network with more points than take turns
        # Points of two devices alternate.
        pytest.param(7, '"here", "there"', [6, 6, 3, 3], marks=pytest.mark.ci),
        pytest.param(20, '"here", "there"', [9, 9], marks=pytest.mark.slow),
    ],
)
def test_points_of_a_network_take_turns_with_each_other(
    tmp_path: Path, most: int, devices: str, sizes: list[int]
) -> None:
    more = ", ".join(
        f'{{ name = "tests.fixtures.stubs:StubCompression", level = {level} }}' for level in (0.2, 0.3)
    )
    server = Watched()
    study = study_of(NETWORKS.format(more=f", {more}", devices=devices))
    run(study.with_limits(turns=most), tmp_path, lambda: server)
    assert [len(points) for points in server.together] == sizes
    for points in server.together:
        assert len({(str(point["model"]), str(point["hardware"]), point["batch"]) for point in points}) == 1
    assert {row.status for row in rows(tmp_path)} == {"ok"}


@pytest.mark.parametrize(("across", "sizes"), [(False, [1, 1, 1]), (True, [2, 1])])
def test_points_of_all_networks_take_turns_where_a_study_asks_for_it(
    tmp_path: Path, across: bool, sizes: list[int]
) -> None:
    server = Watched()
    study = study_of('hardware = ["tests.fixtures.stubs:StubHardware"]\nbatch = [1, 2, 3]')
    study = Study(**{**study.written, "measure": {"across_networks": across}})
    run(study.with_limits(turns=2), tmp_path, lambda: server)
    assert [len(points) for points in server.together] == sizes
    assert {row.status for row in rows(tmp_path)} == {"ok"}


class Recorder:
    """Stands for the server: notes what it is told to do."""

    elsewhere = 0

    def __init__(self) -> None:
        self.calls: list[tuple[str, int]] = []
        self._numbers = itertools.count(1)

    def launch(self, run: PointRun) -> int:
        job = next(self._numbers)
        self.calls.append(("launch", job))
        return job

    def turn(self, job: int) -> None:
        self.calls.append(("turn", job))

    def pause(self, job: int) -> None:
        self.calls.append(("pause", job))

    def resume(self, job: int) -> None:
        self.calls.append(("resume", job))

    def new(self) -> list[tuple[str, int]]:
        """Return what it was told since it was last asked."""
        calls = self.calls
        self.calls = []
        return calls


class Board(StubHardware):
    """A stub that leaves this machine's processors to others."""

    local = False


class OneProgram(Board):
    """A board that holds one program at a time."""

    most_programs = 1


def ready_runs(folder: Path, hardware: str = "tests.fixtures.stubs:StubHardware") -> list[PointRun]:
    """Return two points of a study with only their measurement left, on a device of the test's own."""
    device = f'hardware = [{{name = "{hardware}", place = "{os.getpid()}-{folder.name}"}}]'
    study = study_of(f"{TWO}\n{device}")
    planner = Planner(study.measure, folder)
    plans = map(planner.plan, study.points())
    return [PointRun(plan, folder / "log", done=len(plan.steps)) for plan in plans]


def turns_of(recorder: Recorder, folder: Path, free_memory: float = 1.0) -> Turns:
    return Turns(cast(Runner, recorder), Cache(folder), recorder.launch, 12, free_memory=lambda: free_memory)


def test_each_starts_before_they_go_on_in_a_circle(tmp_path: Path) -> None:
    recorder = Recorder()
    turns = turns_of(recorder, tmp_path)
    turns.start(ready_runs(tmp_path), [])
    turns.turn_asked(1)
    assert recorder.new() == [("launch", 1), ("launch", 2)]
    turns.turn_asked(2)
    turns.turn_asked(1)
    turns.turn_asked(2)
    assert recorder.new() == [("turn", 1), ("turn", 2), ("turn", 1)]
    turns.ended(2)  # killed while it waits: the turn stays where it is
    assert recorder.new() == []
    turns.turn_asked(1)
    assert recorder.new() == [("turn", 1)]
    turns.ended(1)
    assert not turns.taken


@pytest.mark.parametrize(("free", "together"), [(0.9, 2), (0.1, 1)])
def test_points_wait_for_others_where_memory_is_short(tmp_path: Path, free: float, together: int) -> None:
    recorder = Recorder()
    turns = turns_of(recorder, tmp_path, free)
    runs = ready_runs(tmp_path)
    turns.start(runs, [])
    turns.turn_asked(1)
    assert sum(name == "launch" for name, _ in recorder.new()) == together
    assert sum(run.job is not None for run in runs) == together
    turns.ended(1)
    assert turns.taken == (together == 2)


@pytest.mark.parametrize(
    ("hardware", "paused"), [("tests.fixtures.stubs:StubHardware", True), (f"{__name__}:Board", False)]
)
def test_other_jobs_stand_still_while_this_machine_measures(
    tmp_path: Path, hardware: str, paused: bool
) -> None:
    recorder = Recorder()
    turns = turns_of(recorder, tmp_path)
    turns.start(ready_runs(tmp_path, hardware), [7, 8])
    assert turns.fills_machine == paused
    assert recorder.new() == [("pause", 7), ("pause", 8)] * paused + [("launch", 1)]
    turns.turn_asked(1)
    turns.ended(1)
    turns.ended(2)
    assert recorder.new() == [("launch", 2), *[("resume", 7), ("resume", 8)] * paused]
    assert not turns.fills_machine


def test_a_device_for_one_program_is_given_to_one_point_at_a_time(tmp_path: Path) -> None:
    recorder = Recorder()
    turns, runs = turns_of(recorder, tmp_path), ready_runs(tmp_path, f"{__name__}:OneProgram")
    turns.start(runs, [])
    turns.turn_asked(1)
    assert recorder.new() == [("launch", 1), ("turn", 1)]
    turns.ended(1)
    assert not turns.taken
    turns.start(runs[1:], [])
    assert recorder.new() == [("launch", 2)]
    turns.ended(2)


@pytest.mark.parametrize(
    ("hardware", "taken"), [("tests.fixtures.stubs:StubHardware", False), (f"{__name__}:Board", True)]
)
def test_a_check_has_a_device_elsewhere_alone(tmp_path: Path, hardware: str, taken: bool) -> None:
    recorder = Recorder()
    turns, runs = turns_of(recorder, tmp_path), ready_runs(tmp_path, hardware)
    for each in runs:
        each.done -= 1
    assert [each.step.name for each in runs] == ["check", "check"]
    turns.start(runs, [])
    assert turns.taken == taken
    assert recorder.new() == [("launch", 1)] * taken
    if taken:
        runs[0].done, runs[0].job = runs[0].done + 1, None
        turns.ended(1)
        assert not turns.taken


@pytest.mark.parametrize(
    ("hardware", "works", "searches"),
    [
        ("tests.fixtures.stubs:StubHardware", True, False),
        ("tests.fixtures.stubs:StubHardware", False, True),
        (f"{__name__}:Board", True, True),
    ],
)
def test_a_search_waits_while_an_earlier_comparison_is_made_ready_here(
    tmp_path: Path, hardware: str, works: bool, searches: bool
) -> None:
    recorder = Recorder()
    turns, (first, second) = turns_of(recorder, tmp_path), ready_runs(tmp_path, hardware)
    first.done, first.job = 0, 7 if works else None
    search = Step("tune", "searched", {}, "tuning", alone=True)
    steps = tuple(replace(step, alone=False) for step in first.plan.steps)  # a board's check is alone
    first.plan = replace(first.plan, steps=steps)
    second.plan, second.done = replace(second.plan, steps=(search,), comparison=("later",)), 0
    turns.start([first, second], [])
    assert turns.taken == searches
    if searches:
        assert recorder.new()[-1][0] == "launch" and second.running
        turns.ended(1)


def test_nothing_starts_while_another_sweep_has_the_device(tmp_path: Path) -> None:
    recorder = Recorder()
    turns, runs = turns_of(recorder, tmp_path), ready_runs(tmp_path)
    held = lock_device(runs[0].plan.device.device)
    assert held is not None
    turns.start(runs, [])
    assert (turns.taken, recorder.new()) == (False, [])
    held.release()
    turns.start(runs, [])
    assert (turns.taken, recorder.new()) == (True, [("launch", 1)])
    turns.ended(1)


def test_a_sweep_that_waits_says_for_what_and_who_holds_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = f"{os.getpid()}-{tmp_path.name}"
    study = study_of(f'hardware = [{{ name = "tests.fixtures.stubs:StubHardware", place = "{place}" }}]')
    (point,) = study.points()
    plan = Planner(study.measure, tmp_path / "cache").plan(point)
    network, device = plan.artifacts()["network"], plan.device.device
    locks = [Cache(tmp_path / "cache").try_lock(f"network-{network}"), lock_device(device)]
    waited: list[str] = []

    def show(self: SweepProgress, runs: Sequence[PointRun], summary: object, waiting_for: str) -> None:
        if waiting_for and waiting_for not in waited:
            waited.append(waiting_for)
            held = locks.pop(0)
            assert held is not None
            held.release()

    monkeypatch.setattr(SweepProgress, "show", show)
    run(study, tmp_path)
    assert waited == [
        f"network {network[:8]}, which process {os.getpid()} holds",
        f"device {device!r}, which process {os.getpid()} holds",
    ]


@pytest.mark.parametrize("until", ["build", "check"])
def test_a_sweep_that_ends_before_measuring_measures_nothing(tmp_path: Path, until: str) -> None:
    summary = run(study_of("batch = [1, 2]"), tmp_path, until=until, keep_builds=True)
    assert summary.measured == 0
    assert [(row.status, row.latency_s) for row in rows(tmp_path)] == [("ok", [])] * 2


def test_points_that_need_no_step_do_not_end_a_sweep_before_its_others(tmp_path: Path) -> None:
    study = study_of(f"batch = {list(range(1, 11))}").with_limits(turns=1)
    run(study, tmp_path, until="build", keep_builds=True)
    again = run(study, tmp_path, until="build", keep_builds=True, retry=["ok"])
    assert dict(again.written) == {"ok": 10}, "all of them have been built before"
