from __future__ import annotations

import os
import pdb
import signal
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from dlas.bench.processes.events import ChildEnd, Event, Task, TaskEnd, TaskError
from dlas.bench.processes.inline import Inline
from dlas.bench.processes.interface import Channel
from dlas.errors import Unsupported

pytestmark = pytest.mark.usefixtures("same_threads_afterwards")


def where(channel: Channel) -> int:
    channel.say("looking around")
    return os.getpid()


def fail(channel: Channel, kind: str) -> None:
    raise {"unsupported": Unsupported, "exit": SystemExit, "code": KeyError}[kind]("words")


PLACE = f"test_inline.py:{fail.__code__.co_firstlineno + 1}"
"""Where that is."""


def take_turns(channel: Channel) -> str:
    channel.turn()
    breakpoint()
    return "done"


def interrupt(channel: Channel) -> None:
    raise KeyboardInterrupt


def lose_an_interrupt(channel: Channel, number: int, fails: bool) -> None:
    """Do as TVM does with what is raised inside a call of it."""
    try:
        os.kill(os.getpid(), number)
    except KeyboardInterrupt:
        if fails:
            raise RuntimeError from None


def bind(channel: Channel) -> int:
    os.sched_setaffinity(0, [min(os.sched_getaffinity(0))])
    return len(os.sched_getaffinity(0))


@pytest.fixture
def runner() -> Iterator[Inline]:
    runner = Inline()
    yield runner
    runner.close()


def start(runner: Inline, folder: Path, *tasks: Any, **arguments: Any) -> int:
    named = [Task(f"{__name__}:{task.__name__}", arguments, 30) for task in tasks]
    return runner.start(named, log=folder / "log", memory=2**33)


def the_end(events: list[Event]) -> ChildEnd:
    *tasks, end = events
    assert isinstance(end, ChildEnd)
    assert tasks == [
        TaskEnd(end.job, task, end.seconds[task], waited=0.0) for task in range(len(end.results))
    ]
    return end


def test_a_step_runs_in_this_process_and_is_heard(
    runner: Inline, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    job = start(runner, tmp_path, where)
    end = the_end(runner.events(0))
    assert (end.job, end.exit, end.results, end.raised) == (job, 0, [os.getpid()], None)
    assert capsys.readouterr().out == "  looking around\n"
    assert (tmp_path / "log").read_text() == "looking around\n"


@pytest.mark.parametrize(
    ("kind", "raised"),
    [
        ("unsupported", TaskError("Unsupported", "words", "unsupported")),
        ("exit", TaskError("SystemExit", "words", place=PLACE)),
        ("code", TaskError("KeyError", "'words'", place=PLACE)),
    ],
)
def test_an_exception_ends_the_job_and_its_traceback_is_shown_and_kept(
    runner: Inline, tmp_path: Path, capsys: pytest.CaptureFixture[str], kind: str, raised: TaskError
) -> None:
    start(runner, tmp_path, fail, where, kind=kind)
    end = the_end(runner.events(0))
    assert (end.exit, end.results, len(end.seconds), end.raised) == (1, [], 1, raised)
    trace = capsys.readouterr().err
    assert "test_inline.py" in trace and "in fail" in trace
    assert (tmp_path / "log").read_text() == trace


def test_a_breakpoint_is_reached_with_the_terminals_own_streams(
    runner: Inline, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    streams = sys.stdin, sys.stdout, sys.stderr
    seen: list[object] = []

    def note() -> None:
        frame = sys._getframe(1)
        seen.append((frame.f_code.co_name, (sys.stdin, sys.stdout, sys.stderr) == streams))

    monkeypatch.setattr(sys, "breakpointhook", note)
    start(runner, tmp_path, take_turns)
    assert the_end(runner.events(0)).results == ["done"]
    assert seen == [("take_turns", True)]


def test_who_interrupts_a_step_ends_the_sweep(runner: Inline, tmp_path: Path) -> None:
    start(runner, tmp_path, interrupt)
    with pytest.raises(KeyboardInterrupt):
        runner.events(0)


def test_who_leaves_the_debugger_ends_the_sweep(
    runner: Inline, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def leave() -> None:
        raise pdb.bdb.BdbQuit  # type: ignore[attr-defined]

    monkeypatch.setattr(sys, "breakpointhook", leave)
    start(runner, tmp_path, take_turns)
    with pytest.raises(KeyboardInterrupt):
        runner.events(0)


def test_jobs_run_in_order_and_paused_ones_later(runner: Inline, tmp_path: Path) -> None:
    first, second, third = (start(runner, tmp_path, where) for _ in range(3))
    runner.pause(first)
    assert the_end(runner.events(0)).job == second
    runner.resume(first)
    assert [the_end(runner.events(0)).job for _ in range(2)] == [first, third]


def test_without_a_job_it_waits(runner: Inline) -> None:
    began = time.monotonic()
    assert runner.events(0.2) == []
    assert time.monotonic() - began >= 0.2


def test_a_step_that_binds_itself_to_cores_leaves_the_next_one_all(runner: Inline, tmp_path: Path) -> None:
    processors = os.sched_getaffinity(0)
    start(runner, tmp_path, bind)
    assert the_end(runner.events(0)).results == [1]
    assert os.sched_getaffinity(0) == processors


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.parametrize("fails", [False, True])
def test_an_interrupt_that_a_library_swallows_ends_the_sweep(
    runner: Inline, tmp_path: Path, number: int, fails: bool
) -> None:
    numbers = (signal.SIGINT, signal.SIGTERM)
    before = [signal.signal(each, signal.default_int_handler) for each in numbers]  # as the command line has
    start(runner, tmp_path, lose_an_interrupt, where, number=number, fails=fails)
    try:
        with pytest.raises(KeyboardInterrupt):
            runner.events(0)
        assert signal.getsignal(number) is signal.default_int_handler
    finally:
        for each, handler in zip(numbers, before, strict=True):
            signal.signal(each, handler)
