"""Steps in processes of their own, so that whatever happens to one is only a result.

A small server, forked once from the sweep after it has imported what most steps
need, imports the rest when a step asks for it, forks a child a step (tens of
milliseconds instead of seconds of imports) and never runs a kernel itself.
Each child leads a session of its own; a time and a memory limit apply to all
its processes together, and they die with the sweep, however that dies.
"""

from __future__ import annotations

import gc
import importlib
import json
import os
import resource
import signal
import sys
import time
import traceback
from collections.abc import Collection, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from multiprocessing.connection import Connection, Pipe, wait
from pathlib import Path
from typing import Any

from dlas.processes.child import fork_child

POLL_SECONDS = 0.2
"""How often limits are looked at: seldom enough not to disturb what is being timed."""
CLOSER_SECONDS = 2.0
"""How often at most memory is looked at closely, which takes longer."""


class ServerDied(Exception):
    """The process that starts the steps is gone, and all it had started with it."""

    def __init__(self) -> None:
        super().__init__("the process that starts the steps was killed, perhaps because memory ran out")


@dataclass(frozen=True)
class Task:
    """What a child is to do.

    Parameters
    ----------
    function : str
        ``package.module:function``; called with the arguments as keywords and
        ``channel``, it returns something JSON-able.
    arguments : dict
        JSON-able.
    seconds : float
        How long it may take.
    imports : tuple of str
        Modules that it needs and that take long to import: the server does it once.
    """

    function: str
    arguments: dict[str, Any]
    seconds: float
    imports: tuple[str, ...] = ()


@dataclass
class Job:
    """A running child, as the server keeps it; ``limits`` and ``taken`` are seconds a task.

    Its memory is known to be ``enough_until`` a time.
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
    taken: list[float] = field(default_factory=list)
    error: dict[str, Any] | None = None
    stopped: str | None = None
    started: float = field(default_factory=time.monotonic)
    enough_until: float = 0.0

    def finish_task(self, value: Any) -> None:
        """Keep a task's result and give the next one its own time."""
        self.results.append(value)
        self.stop_watch()
        if len(self.results) < len(self.limits):
            self.left = self.limits[len(self.results)]
            self.since = time.monotonic()

    def stop_watch(self) -> None:
        """Note how long a task took, waiting for turns included."""
        now = time.monotonic()
        self.taken.append(now - self.started)
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

    def kill(self, why: str | None = None) -> None:
        """Kill the child with all it started."""
        self.stopped = self.stopped or why
        for kill in (os.killpg, os.kill):
            with suppress(ProcessLookupError, PermissionError):
                kill(self.pid, signal.SIGKILL)

    def _signal(self, number: int) -> None:
        with suppress(ProcessLookupError):
            os.killpg(self.pid, number)


class Server:
    """The sweep's side: start steps, give turns, read events."""

    def __init__(self) -> None:
        self._connection, self.pid = _fork_server()
        self._numbers = 0

    def start(self, tasks: Sequence[Task], *, log: Path, memory: int, threads: int = 1) -> int:
        """Run tasks one after the other in a child.

        Parameters
        ----------
        tasks : sequence of Task
            The first one that fails is the last.
        log : Path
            Gets the child's standard output and error, appended.
        memory : int
            Limit of the child with all it starts: bytes of anonymous memory.
        threads : int
            What numerical libraries may use until a task says otherwise:
            where steps run in parallel, threads that spin cost more than they save.

        Returns
        -------
        int
            The job's number, which its events carry.
        """
        self._numbers += 1
        self._send(
            do="start",
            job=self._numbers,
            tasks=[asdict(task) for task in tasks],
            log=str(log),
            memory=memory,
            threads=threads,
        )
        return self._numbers

    def turn(self, job: int) -> None:
        """Let a child that waits in :meth:`Channel.turn` go on."""
        self._send(do="turn", job=job)

    def pause(self, job: int) -> None:
        """Stop a child, its clock too."""
        self._send(do="pause", job=job)

    def resume(self, job: int) -> None:
        """Let a paused child go on."""
        self._send(do="resume", job=job)

    def events(self, seconds: float) -> list[dict[str, Any]]:
        """Return what happened: ``say``, ``turn`` and ``end`` events, waiting at most ``seconds``.

        Raises
        ------
        ServerDied
        """
        found: list[dict[str, Any]] = []
        try:
            while self._connection.poll(seconds if not found else 0):
                found.append(json.loads(self._connection.recv_bytes()))
        except (EOFError, OSError):
            raise ServerDied from None
        return found

    def close(self) -> None:
        """Kill every child and the server."""
        self._connection.close()
        with suppress(ChildProcessError):
            os.waitpid(self.pid, 0)

    def _send(self, **message: Any) -> None:
        try:
            self._connection.send_bytes(json.dumps(message).encode())
        except OSError:
            raise ServerDied from None


def _fork_server() -> tuple[Connection, int]:
    """Fork the server; return the connection to it and its process number."""
    ours, theirs = Pipe()
    sys.stdout.flush()
    sys.stderr.flush()
    pid = os.fork()
    if pid == 0:
        ours.close()
        code = 1
        try:
            os.setpgid(0, 0)  # Ctrl-C is the sweep's to handle
            signal.signal(signal.SIGINT, signal.SIG_IGN)
            signal.signal(signal.SIGTERM, signal.SIG_DFL)
            gc.collect()
            gc.freeze()  # a collection in a child would touch, and so copy, every page it shares
            _Serving(theirs).run()
            code = 0
        except BaseException:
            traceback.print_exc()
        finally:
            os._exit(code)
    theirs.close()
    return ours, pid


class _Serving:
    """The server's loop."""

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

    def _watched(self) -> list[Any]:
        jobs = self.jobs.values()
        return [self.connection, *(job.pidfd for job in jobs), *(job.connection for job in jobs)]

    def _command(self) -> bool:
        """Carry out one message of the sweep; False when there will be no more."""
        try:
            message = json.loads(self.connection.recv_bytes())
        except (EOFError, OSError):
            return False
        if message["do"] == "start":
            self._start(message)
            return True
        job = self.jobs.get(message["job"])
        if job is None:
            return True  # it ended before the message arrived
        if message["do"] == "pause":
            job.pause()
        else:
            job.resume()
        if message["do"] == "turn":
            with suppress(OSError):  # it may have died meanwhile; its end is on the way
                job.connection.send_bytes(b"turn")
        return True

    def _start(self, message: dict[str, Any]) -> None:
        """Give the tasks to the child that waits for some, and fork the next while that one works."""
        self._import({name for task in message["tasks"] for name in task["imports"]})
        pid, connection = self.spare
        limits = [task["seconds"] for task in message["tasks"]]
        with suppress(OSError):  # if somebody killed it, that is how the job ends
            connection.send_bytes(json.dumps(message).encode())
        self.jobs[message["job"]] = Job(
            message["job"],
            pid,
            os.pidfd_open(pid),
            connection,
            message["memory"],
            limits,
            left=limits[0],
            since=time.monotonic(),
        )
        self.spare = fork_child()

    def _import(self, names: Collection[str]) -> None:
        """Import what is new, and fork the child that waits again; nobody is given a turn meanwhile."""
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
            message = json.loads(job.connection.recv_bytes())
        except (EOFError, OSError):
            return False
        if message["event"] == "result":
            job.finish_task(message["value"])
            return True
        if message["event"] == "error":
            job.error = message
            return True
        if message["event"] == "turn":
            job.pause()  # a runtime's idle threads may spin for long, in what is another point's turn
        self._tell(job=job.number, **message)
        return True

    def _ended(self, job: Job) -> None:
        """Tell how a child ended, after the last of what it said."""
        while job.connection.poll(0) and self._message(job):
            pass
        if len(job.results) < len(job.limits):
            job.stop_watch()
        _, status = os.waitpid(job.pid, 0)
        job.kill()
        os.close(job.pidfd)
        job.connection.close()
        del self.jobs[job.number]
        self._tell(
            job=job.number,
            event="end",
            exit=os.waitstatus_to_exitcode(status),
            stopped=job.stopped,
            results=job.results,
            seconds=job.taken,
            error=job.error,
        )

    def _look_at_limits(self) -> None:
        self.looked = now = time.monotonic()
        for job in self.jobs.values():
            if job.since is None:
                continue
            if now - job.since > job.left:
                job.kill("timeout")
            elif now >= job.enough_until and _anonymous_bytes(job.pid) > job.memory:
                if _anonymous_bytes(job.pid, shares=True) > job.memory:
                    job.kill("memory")
                job.enough_until = now + CLOSER_SECONDS

    def _tell(self, **message: Any) -> None:
        self.connection.send_bytes(json.dumps(message).encode())


def _anonymous_bytes(pid: int, shares: bool = False) -> int:
    """Return the memory that a process and its descendants hold of their own.

    Quickly, which counts what was shared by forking once for each process; or
    by everyone's share of it, which takes the kernel milliseconds a gigabyte.
    """
    total = 0
    waiting = [pid]
    while waiting:
        current = waiting.pop()
        try:
            total += (_shares if shares else _resident)(current)
            for thread in os.listdir(f"/proc/{current}/task"):
                children = Path(f"/proc/{current}/task/{thread}/children").read_text()
                waiting += map(int, children.split())
        except (OSError, ValueError):
            continue  # it ended while we looked
    return total


def _resident(pid: int) -> int:
    resident, shared = Path(f"/proc/{pid}/statm").read_text().split()[1:3]
    return (int(resident) - int(shared)) * resource.getpagesize()


def _shares(pid: int) -> int:
    lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
    return sum(int(line.split()[1]) * 1024 for line in lines if line.startswith("Pss_Anon:"))
