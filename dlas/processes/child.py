"""The child that runs a step's tasks: forked ahead, it waits for them, and leaves when they are done."""

from __future__ import annotations

import ctypes
import faulthandler
import importlib
import json
import os
import resource
import signal
import sys
import traceback
from collections.abc import Callable
from contextlib import suppress
from multiprocessing.connection import Connection, Pipe
from pathlib import Path
from typing import Any, NoReturn

from dlas.measuring.machine import use_threads


class Channel:
    """A step's way to talk to the sweep while it runs."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def say(self, text: str) -> None:
        """Show a line of progress, and keep it in the log."""
        print(text, flush=True)
        self.send(event="say", text=text)

    def turn(self) -> None:
        """Give the device to the other points of a comparison; return when it is this one's again."""
        self.send(event="turn")
        self._connection.recv_bytes()

    def send(self, **message: Any) -> None:
        """Send one JSON message."""
        self._connection.send_bytes(json.dumps(message).encode())


def fork_child() -> tuple[int, Connection]:
    """Fork a child that waits for its task."""
    ours, theirs = Pipe()
    pid = os.fork()
    if pid == 0:
        ours.close()
        _be_child(theirs)
    theirs.close()
    return pid, ours


def _be_child(connection: Connection) -> NoReturn:
    """Wait for tasks, run them, and leave without the parent's clean-up."""
    code = 1
    try:
        _lead_a_session()
        message = json.loads(connection.recv_bytes())
        _write_to(message["log"])
        use_threads(message["threads"])
        channel = Channel(connection)
        try:
            for task in message["tasks"]:
                module, _, name = task["function"].partition(":")
                function: Callable[..., Any] = getattr(importlib.import_module(module), name)
                channel.send(event="result", value=function(channel=channel, **task["arguments"]))
            code = 0
        except BaseException as error:
            traceback.print_exc()
            channel.send(
                event="error",
                kinds=[cls.__name__ for cls in type(error).__mro__],
                errno=getattr(error, "errno", None),
                text=str(error) or type(error).__name__,
            )
        sys.stdout.flush()
        sys.stderr.flush()
    finally:
        os._exit(code)


def _lead_a_session() -> None:
    """Lead a session of one's own, die with the server, leave no core file."""
    os.setsid()
    die_with_parent(os.getppid())
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    with suppress(OSError):
        Path("/proc/self/oom_score_adj").write_text("500")  # before the sweep itself


def die_with_parent(parent: int) -> None:
    """Let the kernel kill this process when the one that forked it dies, as it may already have."""
    ctypes.CDLL(None).prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG
    if os.getppid() != parent or parent == 1:
        os._exit(1)


def _write_to(log: str) -> None:
    """Send what is printed, and what a crash says, to the log; read from nowhere."""
    out = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.dup2(out, 1)
    os.dup2(out, 2)
    sys.stdout = os.fdopen(1, "w", buffering=1, closefd=False)
    sys.stderr = os.fdopen(2, "w", buffering=1, closefd=False)
    faulthandler.disable()  # enabling alone would leave in place what a library has put there since
    faulthandler.enable(sys.stderr)  # a crash leaves its Python stack in the log
