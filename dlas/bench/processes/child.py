"""The child process that runs a step's tasks: forked in advance, it waits for tasks, runs them and exits."""

from __future__ import annotations

import faulthandler
import importlib
import os
import resource
import signal
import sys
import traceback
from collections.abc import Callable
from contextlib import suppress
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from dlas.bench.measuring.machine import use_threads
from dlas.bench.processes.events import Said, Start, Task, TaskError, TaskReturn, TurnRequest, decode, encode
from dlas.bench.processes.forking import fork
from dlas.bench.processes.interface import Channel
from dlas.bench.processes.outcome import describe_exception


class PipeChannel(Channel):
    """Talks to the server that forked this child.

    Parameters
    ----------
    connection : Connection
    job : int
        The number of this child's tasks.
    """

    def __init__(self, connection: Connection, job: int) -> None:
        self._connection, self._job = connection, job

    def say(self, text: str) -> None:
        """Show a line of progress, and write it to the log."""
        print(text, flush=True)
        self.send(Said(self._job, text))

    def turn(self) -> None:
        """Give the device to the other points of a comparison; return when it is this point's turn again."""
        self.send(TurnRequest(self._job))
        self._connection.recv_bytes()

    def send(self, message: Said | TurnRequest | TaskReturn | TaskError) -> None:
        """Send one message."""
        self._connection.send_bytes(encode(message))


def fork_child() -> tuple[int, Connection]:
    """Fork a child that waits for its tasks; return its process id and the connection to it."""
    return fork(_be_child)


def _be_child(connection: Connection) -> int:
    """Wait for tasks, run them, and return the exit code."""
    _lead_a_session()
    try:
        start: Start = decode(connection.recv_bytes())
    except EOFError:
        return 1  # the server has ended
    _write_to(start.log)
    use_threads(start.threads)
    channel = PipeChannel(connection, start.job)
    code = 0
    try:
        for task in start.tasks:
            channel.send(TaskReturn(run_task(task, channel)))
    except BaseException as error:
        traceback.print_exc()
        channel.send(describe_exception(error))
        code = 1
    sys.stdout.flush()
    sys.stderr.flush()
    return code


def run_task(task: Task, channel: Channel) -> Any:
    """Call a task's function; return its result."""
    module, _, name = task.function.partition(":")
    function: Callable[..., Any] = getattr(importlib.import_module(module), name)
    return function(channel=channel, **task.arguments)


def _lead_a_session() -> None:
    """Start a new session, and write no core file."""
    os.setsid()
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    with suppress(OSError):
        Path("/proc/self/oom_score_adj").write_text("500")  # be killed before the sweep when memory runs out


def _write_to(log: str) -> None:
    """Redirect standard output, errors and crash reports to the log; standard input is empty."""
    out = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.dup2(out, 1)
    os.dup2(out, 2)
    sys.stdout = os.fdopen(1, "w", buffering=1, closefd=False)
    sys.stderr = os.fdopen(2, "w", buffering=1, closefd=False)
    faulthandler.disable()  # enabling alone would keep a handler that a library installed since
    faulthandler.enable(sys.stderr)  # a crash leaves its Python stack in the log
