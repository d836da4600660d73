"""Steps in the sweep's own process, for debuggers and profilers."""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
import traceback
from bdb import BdbQuit
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Any

from dlas.bench.measuring.machine import use_threads
from dlas.bench.processes.child import run_task
from dlas.bench.processes.events import ChildEnd, Event, Start, Task, TaskEnd, TaskError
from dlas.bench.processes.interface import Channel, Runner
from dlas.bench.processes.outcome import describe_exception


class Inline(Runner):
    """Runs each job to its end in this process, during :meth:`events`.

    Breakpoints, profilers and tracebacks work as in any program, but there is no
    isolation: no time or memory limit holds, and changes that a step makes to the
    process persist.  A job never waits for its turn: the points of a comparison are
    measured one after the other.
    """

    contained = False

    def __init__(self) -> None:
        self._jobs: dict[int, Start] = {}
        self._paused: set[int] = set()
        self._numbers = 0

    def start(self, tasks: Sequence[Task], *, log: Path, memory: int, threads: int = 1) -> int:
        """Append tasks to the queue; ``memory`` does not limit them."""
        self._numbers += 1
        self._jobs[self._numbers] = Start(self._numbers, tasks, str(log), memory, threads, loaded=[])
        return self._numbers

    def turn(self, job: int) -> None:
        """Do nothing: no job waits for its turn."""

    def pause(self, job: int) -> None:
        """Run other jobs first."""
        self._paused.add(job)

    def resume(self, job: int) -> None:
        """Let the job run when it is next in the queue."""
        self._paused.discard(job)

    def events(self, seconds: float) -> list[Event]:
        """Run the next job and return the ends of its tasks and its own; without a job, wait ``seconds``.

        Raises
        ------
        KeyboardInterrupt
            Where the user interrupts a step or quits its debugger.
        """
        waiting = [job for job in self._jobs if job not in self._paused]
        if not waiting:
            time.sleep(seconds)
            return []
        processors = os.sched_getaffinity(0)
        try:
            return _run(self._jobs.pop(waiting[0]))
        finally:
            os.sched_setaffinity(0, processors)  # a step binds itself to the cores of its device

    def close(self) -> None:
        """Drop the jobs that have not run."""
        self._jobs.clear()


class _PrintingChannel(Channel):
    """Prints a step's progress, and appends it to the point's log."""

    own_process = False

    def __init__(self, log: Path) -> None:
        self._log = log

    def say(self, text: str) -> None:
        print(f"  {text}", flush=True)
        _append(self._log, f"{text}\n")

    def turn(self) -> None:
        pass


def _run(start: Start) -> list[Event]:
    """Run a job's tasks up to the first that raises; they never wait."""
    use_threads(start.threads)
    channel = _PrintingChannel(Path(start.log))
    results: list[Any] = []
    seconds: list[float] = []
    error: TaskError | None = None
    with _interrupts() as interrupted:
        for task in start.tasks:
            began = time.monotonic()
            try:
                results.append(run_task(task, channel))
            except BaseException as caught:
                if interrupted() or isinstance(caught, KeyboardInterrupt | BdbQuit):
                    raise KeyboardInterrupt from None
                error = describe_exception(caught)
                trace = traceback.format_exc()
                sys.stderr.write(trace)
                _append(Path(start.log), trace)
            if interrupted():
                raise KeyboardInterrupt
            seconds.append(time.monotonic() - began)
            if error:
                break
    done = [TaskEnd(start.job, task, seconds[task], 0.0) for task in range(len(results))]
    waited = [0.0] * len(seconds)
    return [*done, ChildEnd(start.job, int(error is not None), results, seconds, waited, raised=error)]


@contextmanager
def _interrupts() -> Iterator[Callable[[], bool]]:
    """Yield what tells whether a signal has interrupted.

    Inside a call of TVM, what its handler raises becomes an error of TVM, or is lost.
    """
    if threading.current_thread() is not threading.main_thread():
        yield lambda: False
        return
    handlers = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    before = {number: handler for number, handler in handlers.items() if callable(handler)}
    seen: list[int] = []

    def note(number: int, frame: FrameType | None) -> None:
        seen.append(number)
        before[signal.Signals(number)](number, frame)

    try:
        for number in before:
            signal.signal(number, note)
        yield lambda: bool(seen)
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _append(log: Path, text: str) -> None:
    with log.open("a") as out:
        out.write(text)
