from __future__ import annotations

import importlib
import os
import re
import signal
import sys
import time
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from dlas.bench.processes.events import ChildEnd, Event, Said, Task, TaskEnd, TurnRequest
from dlas.bench.processes.forking import ASKS_THE_DRIVER
from dlas.bench.processes.interface import Channel
from dlas.bench.processes.server import ServerDied, WorkerServer


def answer(channel: Channel, value: int) -> int:
    channel.say(f"computing {value}")
    return value * 2


def count(channel: Channel, path: str) -> None:
    while True:
        with open(path, "a") as out:
            out.write(".")
        time.sleep(0.005)


def imported(channel: Channel, name: str) -> bool:
    return name in sys.modules


def counts_gpus_without_cuda(channel: Channel) -> bool:
    return os.environ.get(ASKS_THE_DRIVER) == "1"


def take_turns(channel: Channel, turns: int) -> int:
    for _ in range(turns):
        channel.turn()
    return turns


def meet(channel: Channel, folder: str, jobs: int, value: int) -> int:
    """Wait until so many jobs are here: alone, it waits for ever."""
    Path(folder, str(value)).touch()
    while len(os.listdir(folder)) < jobs:
        time.sleep(0.005)
    return value * 2


def sleep(channel: Channel, seconds: float) -> None:
    time.sleep(seconds)


def share(channel: Channel, mebibytes: int, forks: int, own: bool) -> int:
    """Hold memory together with forked children, each of which may take as much of its own."""
    held = bytearray(b"x" * (mebibytes * 2**20))
    pids = []
    for _ in range(forks):
        pids.append(os.fork())
        if pids[-1] == 0:
            more = bytearray(held) if own else b""
            time.sleep(30 if own else 1.5)
            os._exit(len(more) * 0)
    for pid in pids:
        os.waitpid(pid, 0)
    return len(held)


def crash_after_saying(channel: Channel) -> None:
    channel.say("last words")
    os.kill(os.getpid(), signal.SIGSEGV)


@pytest.fixture
def server() -> Iterator[WorkerServer]:
    server = WorkerServer()
    yield server
    server.close()


def start(server: WorkerServer, tmp_path: Path, task: Any, limit: float = 30, **arguments: Any) -> int:
    return server.start([the(task, limit, **arguments)], log=tmp_path / "log", memory=2**33)


def the(task: Any, limit: float = 30, **arguments: Any) -> Task:
    return Task(f"{__name__}:{task.__name__}", arguments, limit)


def until_end(server: WorkerServer) -> tuple[list[str], ChildEnd]:
    """Return what a job said, and how it ended."""
    events: list[Event] = []
    while not any(isinstance(event, ChildEnd) for event in events):
        new = server.events(60)
        assert new, "nothing happened for 60 s"
        events += new
    (end,) = (event for event in events if isinstance(event, ChildEnd))
    return [event.text for event in events if isinstance(event, Said)], end


def test_a_task_returns_its_value_and_its_words(server: WorkerServer, tmp_path: Path) -> None:
    job = start(server, tmp_path, answer, value=21)
    said, end = until_end(server)
    assert said == ["computing 21"]
    assert (end.job, end.exit, end.results) == (job, 0, [42])
    assert "computing 21" in (tmp_path / "log").read_text()


def test_what_a_task_imports_is_there_for_it_and_all_that_follow(
    server: WorkerServer, tmp_path: Path
) -> None:
    name = "xmlrpc.server"
    assert name not in sys.modules
    for names, expected in (((), False), ((name, "no_such_module"), True), ((), True)):
        task = replace(the(imported, name=name), imports=names)
        server.start([task], log=tmp_path / "log", memory=2**33)
        assert until_end(server)[1].results == [expected]


@pytest.mark.slow
@pytest.mark.parametrize("spawned", [False, True])
def test_what_the_sweep_has_imported_of_this_package_is_there(spawned: bool, tmp_path: Path) -> None:
    with closing(WorkerServer(spawned)) as server:
        for name in ("dlas.sweep.study.study", "dlas.deployment.remaking"):
            importlib.import_module(name)  # after the server has started
            start(server, tmp_path, imported, name=name)
            assert until_end(server)[1].results == [True]


def test_imports_leave_cuda_to_the_tasks(server: WorkerServer, tmp_path: Path) -> None:
    start(server, tmp_path, counts_gpus_without_cuda)
    assert until_end(server)[1].results == [True]


def test_a_turn_is_waited_for_and_its_clock_stands(server: WorkerServer, tmp_path: Path) -> None:
    job = start(server, tmp_path, take_turns, 2.0, turns=2)
    for _ in range(2):
        assert server.events(20) == [TurnRequest(job)]
        assert server.events(1.2) == []  # longer in all than the limit, which counts its own time only
        server.turn(job)
    end = until_end(server)[1]
    assert end.stopped is None
    assert end.waited[0] > 2.0, "nearly all of the time in which the test kept it waiting"


def test_a_paused_job_does_nothing_and_its_clock_stands(server: WorkerServer, tmp_path: Path) -> None:
    path = tmp_path / "count"
    job = start(server, tmp_path, count, 3.0, path=str(path))
    while not path.exists():
        time.sleep(0.01)
    server.pause(job)
    before = -1
    while (size := path.stat().st_size) != before:  # a loaded machine takes a while to stop it
        before = size
        time.sleep(0.5)
    assert server.events(3.2) == []
    assert path.stat().st_size == before
    server.resume(job)
    end = until_end(server)[1]
    assert end.stopped == "timeout"
    assert end.waited[0] >= 3.0, "most of the time in which the test paused it"
    assert path.stat().st_size > before


def test_what_was_said_before_a_crash_is_not_lost(server: WorkerServer, tmp_path: Path) -> None:
    start(server, tmp_path, crash_after_saying)
    said, end = until_end(server)
    assert said == ["last words"]
    assert end.exit == -signal.SIGSEGV
    assert re.search("Segmentation fault|Segfault", (tmp_path / "log").read_text())


def test_tasks_run_one_after_the_other_each_with_its_own_time(server: WorkerServer, tmp_path: Path) -> None:
    tasks = [
        the(sleep, 20, seconds=0.5),
        the(answer, value=4),
        the(sleep, 0.8, seconds=60),
        the(answer, value=5),
    ]
    server.start(tasks, log=tmp_path / "log", memory=2**33)
    events: list[Event] = []
    while not events or not isinstance(events[-1], ChildEnd):
        events += server.events(20)
    *finished, end = (event for event in events if isinstance(event, TaskEnd | ChildEnd))
    assert isinstance(end, ChildEnd)
    assert (end.results, end.stopped) == ([None, 8], "timeout")
    assert len(end.seconds) == len(end.waited) == 3
    assert finished == [TaskEnd(end.job, task, end.seconds[task], end.waited[task]) for task in range(2)]
    assert end.seconds[0] >= 0.5


@pytest.mark.parametrize(("own", "stopped"), [(False, None), (True, "memory")])
def test_memory_shared_by_forking_counts_once(
    server: WorkerServer, tmp_path: Path, own: bool, stopped: str | None
) -> None:
    task = the(share, mebibytes=500, forks=4, own=own)
    # Whatever the test process holds itself is shared too, but may be copied when it is touched.
    server.start([task], log=tmp_path / "log", memory=1750 * 2**20)
    assert until_end(server)[1].stopped == stopped


@pytest.mark.slow
def test_many_jobs_at_a_time(server: WorkerServer, tmp_path: Path) -> None:
    place = tmp_path / "met"
    place.mkdir()
    jobs = {
        start(server, tmp_path, meet, folder=str(place), jobs=20, value=value): value for value in range(20)
    }
    results: dict[int, Any] = {}
    while len(results) < len(jobs):
        events = server.events(60)
        assert events, f"{len(results)} of {len(jobs)} ended: do they wait for each other?"
        results |= {event.job: event.results for event in events if isinstance(event, ChildEnd)}
    assert results == {job: [2 * value] for job, value in jobs.items()}


def test_closing_the_server_ends_what_runs(tmp_path: Path) -> None:
    server = WorkerServer()
    path = tmp_path / "count"
    start(server, tmp_path, count, path=str(path))
    while not path.exists():
        time.sleep(0.01)
    server.close()
    time.sleep(0.2)
    before = path.stat().st_size
    time.sleep(0.2)
    assert path.stat().st_size == before


def test_a_server_that_died_is_noticed(tmp_path: Path) -> None:
    server = WorkerServer()
    start(server, tmp_path, sleep, seconds=60.0)
    os.kill(server.pid, signal.SIGKILL)
    with pytest.raises(ServerDied):
        server.events(20)
    server.close()
