"""Steps in separate processes, so that a crash of one is only a result.

A small server imports what the sweep has imported of this package and what else takes long when a step
needs it, forks a child for each step (tens of milliseconds instead of seconds of imports) and never runs a
kernel itself.  Each child leads its own session; a time and a memory limit apply to all its processes
together, and they die with the sweep.
"""

from __future__ import annotations

import gc
import os
import signal
import sys
import traceback
from collections.abc import Sequence
from contextlib import suppress
from multiprocessing.connection import Connection, Pipe
from pathlib import Path

from dlas.bench.measuring.addresses import fixed
from dlas.bench.processes.events import Command, Event, GiveTurn, Pause, Resume, Start, Task, decode, encode
from dlas.bench.processes.forking import ASKS_THE_DRIVER
from dlas.bench.processes.interface import Runner
from dlas.bench.processes.serving import Serving

PACKAGE = f"{__name__.partition('.')[0]}."
"""What names of this package's modules start with."""
SERVE = "import sys; from dlas.bench.processes.serving import serve; serve(int(sys.argv[1]))"
"""The program of a server in an interpreter of its own; its argument is the descriptor of its connection."""


class ServerDied(Exception):
    """The process that starts the steps has died, and its children with it."""

    def __init__(self) -> None:
        super().__init__("the process that starts the steps was killed, perhaps because memory ran out")


class WorkerServer(Runner):
    """The sweep's side of the server; each job runs in a child of its own.

    Parameters
    ----------
    spawned : bool
        Start the server in a new interpreter, for sweeps of processes that have threads or have run
        kernels, such as notebooks: a fork would lack the threads of their libraries.
    """

    def __init__(self, spawned: bool = False) -> None:
        self._connection, self.pid = _spawn_server() if spawned else _fork_server()
        self._numbers = 0
        self._loaded: set[str] = set()
        self._modules = 0

    def start(self, tasks: Sequence[Task], *, log: Path, memory: int, threads: int = 1) -> int:
        """Run tasks one after the other in a child, whose output goes to ``log``."""
        self._numbers += 1
        self._send(Start(self._numbers, tasks, str(log), memory, threads, self._newly_loaded()))
        return self._numbers

    def turn(self, job: int) -> None:
        """Let a child that waits in :meth:`Channel.turn` continue."""
        self._send(GiveTurn(job))

    def pause(self, job: int) -> None:
        """Stop a child and the clock of its time limit."""
        self._send(Pause(job))

    def resume(self, job: int) -> None:
        """Let a paused child continue."""
        self._send(Resume(job))

    def events(self, seconds: float) -> list[Event]:
        """Return the events so far, waiting at most ``seconds`` for the first.

        Raises
        ------
        ServerDied
        """
        events: list[Event] = []
        try:
            while self._connection.poll(seconds if not events else 0):
                events.append(decode(self._connection.recv_bytes()))
        except (EOFError, OSError):
            raise ServerDied from None
        return events

    def close(self) -> None:
        """Kill every child and the server."""
        self._connection.close()
        with suppress(ChildProcessError):
            os.waitpid(self.pid, 0)

    def _newly_loaded(self) -> list[str]:
        """Return the modules of this package that were imported since the last start."""
        if len(sys.modules) == self._modules:
            return []
        self._modules = len(sys.modules)
        new = {name for name in sys.modules if name.startswith(PACKAGE)} - self._loaded
        self._loaded |= new
        return sorted(new)

    def _send(self, command: Command) -> None:
        try:
            self._connection.send_bytes(encode(command))
        except OSError:
            raise ServerDied from None


def _spawn_server() -> tuple[Connection, int]:
    """Start the server in a new interpreter that finds the same modules, at the addresses of all others."""
    ours, theirs = Pipe()
    path = os.pathsep.join(entry or os.getcwd() for entry in sys.path)
    os.set_inheritable(theirs.fileno(), True)
    # Sets and dictionaries whose order is random take and leave memory in another order, too.
    environment = {ASKS_THE_DRIVER: "1", **os.environ, "PYTHONPATH": path, "PYTHONHASHSEED": "0"}
    with fixed():
        pid = os.posix_spawn(
            sys.executable,
            [sys.executable, "-c", SERVE, str(theirs.fileno())],
            environment,
            file_actions=[(os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDONLY, 0)],
            setpgroup=0,  # the sweep handles Ctrl-C
        )
    theirs.close()
    return ours, pid


def _fork_server() -> tuple[Connection, int]:
    """Fork the server; return the connection to it and its process id."""
    ours, theirs = Pipe()
    sys.stdout.flush()
    sys.stderr.flush()
    pid = os.fork()
    if pid == 0:
        ours.close()
        code = 1
        try:
            os.setpgid(0, 0)  # the sweep handles Ctrl-C
            signal.signal(signal.SIGINT, signal.SIG_IGN)
            signal.signal(signal.SIGTERM, signal.SIG_DFL)
            gc.collect()
            gc.freeze()  # a collection in a child would touch, and so copy, every page it shares
            os.environ.setdefault(ASKS_THE_DRIVER, "1")
            Serving(theirs).run()
            code = 0
        except BaseException:
            traceback.print_exc()
        finally:
            os._exit(code)
    theirs.close()
    return ours, pid
