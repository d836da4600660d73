"""The server's loop: fork the children that run steps, watch their limits, pass on what they say."""

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

from dlas.processes.child import fork_child
from dlas.processes.events import (
    Command,
    Ended,
    Event,
    Finished,
    GiveTurn,
    Message,
    Pause,
    Raised,
    Said,
    Start,
    TurnAsked,
    decode,
    encode,
)
from dlas.processes.memory import exact_bytes, quick_bytes

POLL_SECONDS = 0.2
"""How often limits are looked at: seldom enough not to disturb what is being timed."""
CLOSER_SECONDS = 2.0
"""How often at most memory is looked at closely, which takes longer."""


@dataclass
class Job:
    """A running child, as the server keeps it.

    Parameters
    ----------
    number : int
    pid, pidfd : int
        Its process, and a descriptor that is readable when that has ended.
    connection : Connection
    memory : int
        Bytes that it may hold with all it starts.
    limits : list of float
        Seconds that each task may take.
    left : float
        Seconds that the present task had left when its clock last started.
    since : float or None
        When its clock last started; None while that stands.
    results : list
        What its tasks have returned.
    seconds : list of float
        How long each of its tasks took.
    raised : Raised or None
        The exception that ended it.
    stopped : str or None
        The limit that it was killed for.
    started : float
        When the present task began.
    next_close_look : float
        Its memory is not looked at again before this time.
    """

    number: int
    pid: int
    pidfd: int
    connection: Connection
    memory: int
    limits: list[float]
    left: float
    since: float | None
    results: list[Any] = field(default_factory=list)
    seconds: list[float] = field(default_factory=list)
    raised: Raised | None = None
    stopped: Literal["timeout", "memory"] | None = None
    started: float = field(default_factory=time.monotonic)
    next_close_look: float = 0.0

    def finish_task(self, value: object) -> None:
        """Keep a task's result and give the next one its own time."""
        self.results.append(value)
        self.stop_watch()
        if len(self.results) < len(self.limits):
            self.left = self.limits[len(self.results)]
            self.since = time.monotonic()

    def stop_watch(self) -> None:
        """Add how long a task took, waiting for turns included."""
        now = time.monotonic()
        self.seconds.append(now - self.started)
        self.started = now

    def pause(self) -> None:
        """Stop the child with all it started, and the clock of its time limit."""
        if self.since is not None:
            self.left -= time.monotonic() - self.since
            self.since = None
        self._signal(signal.SIGSTOP)

    def resume(self) -> None:
        """Let the child and the clock run on."""
        if self.since is None:
            self.since = time.monotonic()
        self._signal(signal.SIGCONT)

    def kill(self, limit: Literal["timeout", "memory"] | None = None) -> None:
        """Kill the child with all it started, for a limit or because its job is over."""
        self.stopped = self.stopped or limit
        for kill in (os.killpg, os.kill):
            with suppress(ProcessLookupError, PermissionError):
                kill(self.pid, signal.SIGKILL)

    def _signal(self, number: int) -> None:
        with suppress(ProcessLookupError):
            os.killpg(self.pid, number)


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
        self.looked = time.monotonic()
        self.spare = fork_child()

    def run(self) -> None:
        """Serve until the sweep closes its end or dies; then nothing it started is left."""
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
                if time.monotonic() - self.looked >= POLL_SECONDS:
                    self._look_at_limits()
        finally:
            for job in self.jobs.values():
                job.kill()
            os.kill(self.spare[0], signal.SIGKILL)

    def _watched(self) -> list[Connection | int]:
        jobs = self.jobs.values()
        return [self.connection, *(job.pidfd for job in jobs), *(job.connection for job in jobs)]

    def _command(self) -> bool:
        """Carry out one command of the sweep; False when there will be no more."""
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
            with suppress(OSError):  # it may have died meanwhile; its end is on the way
                job.connection.send_bytes(b"turn")
        return True

    def _start(self, start: Start) -> None:
        """Give the tasks to the child that waits for some, and fork the next while that one works."""
        self._import({name for task in start.tasks for name in task.imports})
        pid, connection = self.spare
        limits = [task.seconds for task in start.tasks]
        with suppress(OSError):  # if somebody killed it, that is how the job ends
            connection.send_bytes(encode(start))
        pidfd = os.pidfd_open(pid)
        self.jobs[start.job] = Job(
            start.job, pid, pidfd, connection, start.memory, limits, limits[0], time.monotonic()
        )
        self.spare = fork_child()

    def _import(self, names: Collection[str]) -> None:
        """Import what is new, and fork the child that waits again; no turn is given meanwhile."""
        new = [name for name in sorted(names) if name not in sys.modules]
        if not new:
            return
        for name in new:
            with suppress(Exception):  # the task that needs it will say what is wrong with it
                importlib.import_module(name)
        gc.collect()
        gc.freeze()
        pid, connection = self.spare
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
        connection.close()
        self.spare = fork_child()

    def _message(self, job: Job) -> bool:
        """Take one message of a child: keep its results, pass on the rest; False if there was none."""
        try:
            message: Message = decode(job.connection.recv_bytes())
        except (EOFError, OSError):
            return False
        if isinstance(message, Finished):
            job.finish_task(message.value)
        elif isinstance(message, Raised):
            job.raised = message
        elif isinstance(message, Said | TurnAsked):
            if isinstance(message, TurnAsked):
                job.pause()  # a runtime's idle threads may spin for long, in what is another point's turn
            self._send(message)
        return True

    def _ended(self, job: Job) -> None:
        """Report how a child ended, after the last of what it said."""
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
        self._send(Ended(job.number, code, job.results, job.seconds, job.stopped, job.raised))

    def _look_at_limits(self) -> None:
        self.looked = now = time.monotonic()
        for job in self.jobs.values():
            if job.since is None:
                continue
            if now - job.since > job.left:
                job.kill("timeout")
            elif now >= job.next_close_look and quick_bytes(job.pid) > job.memory:
                if exact_bytes(job.pid) > job.memory:
                    job.kill("memory")
                job.next_close_look = now + CLOSER_SECONDS

    def _send(self, event: Event) -> None:
        self.connection.send_bytes(encode(event))
