"""The server's loop: fork the children that run steps, enforce their limits, forward their messages."""

from __future__ import annotations

import gc
import importlib
import os
import signal
import sys
import time
from collections.abc import Collection
from contextlib import suppress
from dataclasses import dataclass, field
from multiprocessing.connection import Connection, wait
from typing import Any, Literal

from dlas.bench.processes.child import fork_child
from dlas.bench.processes.events import (
    ChildEnd,
    Command,
    Event,
    GiveTurn,
    Message,
    Pause,
    Said,
    Start,
    TaskEnd,
    TaskError,
    TaskReturn,
    TurnRequest,
    decode,
    encode,
)
from dlas.bench.processes.memory import exact_bytes, quick_bytes
from dlas.bench.processes.pages import join_pages

POLL_SECONDS = 0.2
"""Interval of limit checks: long enough not to disturb measurements."""
EXACT_SECONDS = 2.0
"""Shortest interval of exact memory checks, which take longer."""
JOINED_AFTER = 16
"""Children after which the server joins its pages, which takes as long as it saves over forty of them."""


@dataclass
class Job:
    """A running child, as the server sees it."""

    number: int
    pid: int
    pidfd: int
    """Its process, and a descriptor that becomes readable when the process ends."""
    connection: Connection
    memory: int
    """Bytes that it and its descendants may use."""
    limits: list[float]
    """Time limit of each task, seconds."""
    since: float | None
    """When its clock last started; None while it is stopped or waits for its turn."""
    worked: float = 0.0
    """Seconds that the current task had worked by then."""
    results: list[Any] = field(default_factory=list)
    """Results of its tasks so far."""
    seconds: list[float] = field(default_factory=list)
    waited: list[float] = field(default_factory=list)
    """How long each of its tasks worked, and how long it stood still."""
    raised: TaskError | None = None
    """The exception that ended it."""
    stopped: Literal["timeout", "memory"] | None = None
    """The limit that it was killed for."""
    started: float = field(default_factory=time.monotonic)
    """When the current task started."""
    next_exact_check: float = 0.0
    """Its memory is not checked exactly before this time."""

    def finish_task(self, value: object) -> TaskEnd:
        """Store a task's result, start the clock of the next task, and return the event that says so."""
        self.results.append(value)
        self.stop_watch()
        return TaskEnd(self.number, len(self.results) - 1, self.seconds[-1], self.waited[-1])

    def stop_watch(self) -> None:
        """Record how long a task worked and how long it stood still."""
        now = time.monotonic()
        self.seconds.append(self.worked_by(now))
        self.waited.append(max(0.0, now - self.started - self.seconds[-1]))
        self.started, self.worked = now, 0.0
        if self.since is not None:
            self.since = now

    def worked_by(self, now: float) -> float:
        """Return the seconds that the current task has worked."""
        return self.worked + (0.0 if self.since is None else now - self.since)

    @property
    def limit(self) -> float:
        """The time limit of the current task, or of the last one while the child exits."""
        return self.limits[min(len(self.results), len(self.limits) - 1)]

    def pause(self) -> None:
        """Stop the child, its descendants and the clock of its time limit."""
        self.worked, self.since = self.worked_by(time.monotonic()), None
        self._signal(signal.SIGSTOP)

    def resume(self) -> None:
        """Let the child and the clock continue."""
        if self.since is None:
            self.since = time.monotonic()
        self._signal(signal.SIGCONT)

    def kill(self, limit: Literal["timeout", "memory"] | None = None) -> None:
        """Kill the child and its descendants, for a limit or because its job is over."""
        self.stopped = self.stopped or limit
        for kill in (os.killpg, os.kill):
            with suppress(ProcessLookupError, PermissionError):
                kill(self.pid, signal.SIGKILL)

    def _signal(self, number: int) -> None:
        with suppress(ProcessLookupError):
            os.killpg(self.pid, number)


def serve(descriptor: int) -> None:
    """Serve the sweep at the other end of a connection, in an interpreter started for it."""
    gc.collect()
    gc.freeze()  # a collection in a child would touch, and so copy, every page it shares
    Serving(Connection(descriptor)).run()


class Serving:
    """The server's loop.

    Parameters
    ----------
    connection : Connection
        To the sweep.
    """

    def __init__(self, connection: Connection) -> None:
        self.connection = connection
        self.jobs: dict[int, Job] = {}
        self.started = 0
        self.last_check = time.monotonic()
        self.spare = fork_child()

    def run(self) -> None:
        """Serve until the sweep closes its end or dies; then kill all children."""
        try:
            while True:
                ready = wait(self._watched(), POLL_SECONDS if self.jobs else None)
                if self.connection in ready and not self._command():
                    return
                for job in list(self.jobs.values()):
                    if job.connection in ready:
                        self._message(job)
                    if job.pidfd in ready:
                        self._ended(job)
                if time.monotonic() - self.last_check >= POLL_SECONDS:
                    self._check_limits()
        finally:
            for job in self.jobs.values():
                job.kill()
            os.kill(self.spare[0], signal.SIGKILL)

    def _watched(self) -> list[Connection | int]:
        jobs = self.jobs.values()
        return [self.connection, *(job.pidfd for job in jobs), *(job.connection for job in jobs)]

    def _command(self) -> bool:
        """Carry out one command of the sweep; False when the sweep has ended."""
        try:
            command: Command = decode(self.connection.recv_bytes())
        except (EOFError, OSError):
            return False
        if isinstance(command, Start):
            self._start(command)
            return True
        job = self.jobs.get(command.job)
        if job is None:
            return True  # it ended before the command arrived
        if isinstance(command, Pause):
            job.pause()
        else:
            job.resume()
        if isinstance(command, GiveTurn):
            with suppress(OSError):  # it may have died meanwhile; its end is reported next
                job.connection.send_bytes(b"turn")
        return True

    def _start(self, start: Start) -> None:
        """Give the tasks to the waiting child, and fork the next child while that one works."""
        functions = {task.function.partition(":")[0] for task in start.tasks}
        self._import({*start.loaded, *functions, *(name for task in start.tasks for name in task.imports)})
        pid, connection = self.spare
        limits = [task.seconds for task in start.tasks]
        now = time.monotonic()  # before the child can start, so that its clock never runs short
        with suppress(OSError):  # if it was killed, its end is reported as the job's
            connection.send_bytes(encode(start))
        pidfd = os.pidfd_open(pid)
        self.jobs[start.job] = Job(start.job, pid, pidfd, connection, start.memory, limits, now, started=now)
        self.started += 1
        if self.started == JOINED_AFTER:
            join_pages()
        self.spare = fork_child()

    def _import(self, names: Collection[str]) -> None:
        """Import new modules and replace the waiting child; no turn is given meanwhile."""
        new = [name for name in sorted(names) if name not in sys.modules]
        if not new:
            return
        for name in new:
            with suppress(Exception):  # the task that needs it will raise the error
                importlib.import_module(name)
        gc.collect()
        gc.freeze()
        pid, connection = self.spare
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
        connection.close()
        self.spare = fork_child()

    def _message(self, job: Job) -> bool:
        """Handle one message of a child: store results, forward the rest; False if there was none."""
        try:
            message: Message = decode(job.connection.recv_bytes())
        except (EOFError, OSError):
            return False
        if isinstance(message, TaskReturn):
            self._send(job.finish_task(message.value))
        elif isinstance(message, TaskError):
            job.raised = message
        elif isinstance(message, Said | TurnRequest):
            if isinstance(message, TurnRequest):
                job.pause()  # a runtime's idle threads may spin into another point's turn
            self._send(message)
        return True

    def _ended(self, job: Job) -> None:
        """Report how a child ended, after its last message."""
        while job.connection.poll(0) and self._message(job):
            pass
        if len(job.results) < len(job.limits):
            job.stop_watch()
        _, status = os.waitpid(job.pid, 0)
        job.kill()
        os.close(job.pidfd)
        job.connection.close()
        del self.jobs[job.number]
        code = os.waitstatus_to_exitcode(status)
        durations = job.seconds, job.waited
        self._send(ChildEnd(job.number, code, job.results, *durations, job.stopped, job.raised))

    def _check_limits(self) -> None:
        self.last_check = now = time.monotonic()
        for job in self.jobs.values():
            if job.since is None:
                continue
            if job.worked_by(now) > job.limit:
                job.kill("timeout")
            elif now >= job.next_exact_check and quick_bytes(job.pid) > job.memory:
                if exact_bytes(job.pid) > job.memory:
                    job.kill("memory")
                job.next_exact_check = now + EXACT_SECONDS

    def _send(self, event: Event) -> None:
        self.connection.send_bytes(encode(event))
