"""One session on a board: a process group of its own, in a folder of its own."""

from __future__ import annotations

import contextlib
import os
import resource
import shutil
import signal
import socket
import tempfile
import time
from collections.abc import Iterable
from multiprocessing.connection import Connection
from pathlib import Path

from dlas.bench.clocks.served import ServedClocks
from dlas.bench.measuring import on_board
from dlas.bench.processes.forking import fork
from dlas.bench.processes.outcome import signal_name
from dlas.bench.remote import handshake
from dlas.errors import InputError

LEAVING_S = 1.0
"""How long a session may go on after its client has closed the connection."""
SENDING_S = 1.0
UNREAD = 65_536
FIRST_TO_DIE = "1000"
"""The kernel's score for a process that it kills first where memory runs out: never the server."""


class BoardSession:
    """A client's session, served by a child process.

    Parameters
    ----------
    client : socket.socket
        The connection; it is closed when the session ends.
    key : str
        The server's key.
    seconds : float
        Longest duration.
    parent : Path
        Where its folder is made.
    others : iterable of socket.socket
        The server's further sockets, which the child closes.
    clocks_root : Path, optional
        The folder that holds sys, where the client may set clocks.
    """

    def __init__(
        self,
        client: socket.socket,
        key: str,
        seconds: float,
        parent: Path,
        others: Iterable[socket.socket],
        clocks_root: Path | None = None,
    ) -> None:
        self.client = client
        self.started = time.monotonic()
        self.until = self.started + seconds
        self._seconds = seconds
        self._left = False
        self._folder = Path(tempfile.mkdtemp(dir=parent))

        def main(_: Connection) -> int:
            for other in others:
                other.close()
            return _serve(client, key, self._folder, clocks_root)

        self._pid, self.alive = fork(main)
        """The pipe's other end is closed by the child's end."""

    def client_left(self) -> None:
        """Give the session a moment to end by itself."""
        self._left = True
        self.until = min(self.until, time.monotonic() + LEAVING_S)

    def end(self) -> str | None:
        """End the session if it is over or its time is, and return how it ended; else None."""
        exited = os.waitid(os.P_PID, self._pid, os.WEXITED | os.WNOHANG | os.WNOWAIT)
        if exited is None and time.monotonic() < self.until:
            return None
        status = self.kill()
        code = os.waitstatus_to_exitcode(status)
        if exited is None and not self._left:
            reason = f"stopped at its time limit of {self._seconds:g} s"
            self._tell(f"RPCSessionTimeoutError: {reason}")
        elif exited is None:
            reason = "stopped, as its client had left"
        elif code == 0:
            reason = "ended"
        else:
            reason = f"killed by {signal_name(-code)}" if code < 0 else f"ended with exit code {code}"
            self._tell(f"RPCSessionEndedError: {reason}")
        self.client.close()
        return f"{reason} after {time.monotonic() - self.started:.1f} s"

    def kill(self) -> int:
        """End the session's processes at once, remove its folder, and return the child's status."""
        for number in (self._pid, -self._pid):  # alone, if it has not made its group yet
            with contextlib.suppress(ProcessLookupError):
                os.kill(number, signal.SIGKILL)
        _, status = os.waitpid(self._pid, 0)
        self.alive.close()
        shutil.rmtree(self._folder, ignore_errors=True)
        return status

    def _tell(self, reason: str) -> None:
        """Send a client that waits for a result the reason why it gets none."""
        from tvm.rpc import _ffi_api

        limit = handshake.TIMEVAL.pack(int(SENDING_S), 0)
        with contextlib.suppress(Exception):  # it may have left, or read nothing
            self.client.setsockopt(socket.SOL_SOCKET, socket.SO_SNDTIMEO, limit)
            _ffi_api.ReturnException(self.client.fileno(), reason)
            while self.client.recv(UNREAD, socket.MSG_DONTWAIT):
                """Unread bytes would make the kernel discard the reason, and reset the connection."""


def _serve(client: socket.socket, key: str, folder: Path, clocks_root: Path | None) -> int:
    """Run a client's calls in this process until it leaves."""
    from tvm.rpc import _ffi_api

    os.setpgid(0, 0)
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.SIG_DFL)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    with contextlib.suppress(OSError):
        Path("/proc/self/oom_score_adj").write_text(FIRST_TO_DIE)
    os.chdir(folder)
    _provide(folder)
    ServedClocks(clocks_root).register()
    client.setblocking(True)
    client.sendall(handshake.welcome(key))
    _ffi_api.ServerLoop(client.fileno())
    return 0


def _provide(folder: Path) -> None:
    """Register the functions of a session that TVM leaves to the server."""
    import tvm_ffi
    from tvm.runtime import Module, load_module

    on_board.register()

    def path_of(name: str) -> str:
        path = (folder / name).resolve()
        if not path.is_relative_to(folder.resolve()):
            raise InputError(f"{name!r} lies outside of the session's folder")
        return str(path)

    def load(name: str) -> Module:
        return load_module(path_of(name))

    for name, function in {"tvm.rpc.server.workpath": path_of, "tvm.rpc.server.load_module": load}.items():
        tvm_ffi.register_global_func(name, function, override=True)
