"""The server on a board: it checks tokens, and gives one client at a time a session of its own."""

from __future__ import annotations

import contextlib
import hmac
import select
import socket
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from dlas.bench.measuring import on_board
from dlas.bench.measuring.machine import Machine
from dlas.bench.remote import handshake
from dlas.bench.remote.folders import server_folder
from dlas.bench.remote.session import BoardSession
from dlas.bench.store.fingerprint import versions
from dlas.errors import InputError

HANDSHAKE_S = 5.0
"""How long a client may take to say what it wants."""
MOST_CALLERS = 16
"""Clients whose handshake is in progress; the one that came first goes for a further one."""
LONGEST_S = 3600.0
READABLE = select.POLLIN | select.POLLHUP | select.POLLERR


@dataclass
class Caller:
    """A client that has not said yet what it wants."""

    connection: socket.socket
    name: str
    until: float
    content: bytes = field(default=b"", repr=False)

    def read(self) -> handshake.Request | None:
        """Read what has come, and return the request once it is complete.

        Raises
        ------
        Malformed
            If it is none, or the client has left.
        """
        more = self.connection.recv(self._length() - len(self.content))
        if not more:
            raise handshake.Malformed("the client left")
        self.content += more
        header = handshake.HEADER.size
        if len(self.content) == header or len(self.content) < self._length():
            return None
        return handshake.Request.decode(self.content[header:])

    def _length(self) -> int:
        """Return the length of the header, or of the whole request once the header is there."""
        header = handshake.HEADER.size
        if len(self.content) < header:
            return header
        return header + handshake.key_length(self.content[:header])


class BoardServer:
    """A server that outlives whatever its sessions do.

    Parameters
    ----------
    key : str
        Its name.
    token : str
        What a client must send before anything is started for it.
    host, port : str, int
        Where it listens; port 0 takes a free one.
    say : callable
        Gets a line for each thing that happens.
    longest_s : float
        The longest session that a client may ask for; also of clients that ask for none.
    clocks_root : Path, optional
        The folder that holds sys, where clients may set the board's clocks, which are restored at the end of
        a session; by default they may not.

    Raises
    ------
    InputError
        If it cannot listen there.
    """

    def __init__(
        self,
        key: str,
        token: str,
        host: str,
        port: int,
        say: Callable[[str], None],
        longest_s: float = LONGEST_S,
        clocks_root: Path | None = None,
    ) -> None:
        self._key, self._token = key, token
        self._clocks_root = clocks_root
        self._say, self._longest_s = say, longest_s
        try:
            self._listener = socket.create_server((host, port))
        except (OSError, OverflowError) as error:
            raise InputError(f"cannot listen at {host}:{port}: {error}") from None
        self._listener.setblocking(False)
        self.port: int = self._listener.getsockname()[1]
        self._callers: dict[int, Caller] = {}
        self._session: BoardSession | None = None
        self._facts: dict[str, Any] = {}
        self._poll = select.poll()
        self._poll.register(self._listener, READABLE)

    def serve(self) -> None:
        """Serve until the process is interrupted; nothing of a session is left behind then."""
        with server_folder() as folder:
            try:
                while True:
                    self._turn(folder)
            finally:
                if self._session is not None:
                    self._session.kill()

    def describe(self) -> dict[str, Any]:
        """Return what the server says of itself; during a session, not to disturb it, as it was before."""
        session = self._session
        if session is None or not self._facts:
            machine = Machine()
            self._facts = {
                "tvm": versions(["apache-tvm"])["apache-tvm"],
                "code": on_board.code(),
                "machine": machine.describe(),
                "flags": sorted(machine.flags()),
            }
        return {**self._facts, "busy_s": None if session is None else time.monotonic() - session.started}

    def _turn(self, folder: Path) -> None:
        """Wait for the next event, and do what it asks for."""
        for number, _ in self._poll.poll(self._milliseconds()):
            if number == self._listener.fileno():
                self._accept()
            elif number in self._callers:
                self._hear(self._callers[number], folder)
            elif self._session is not None and number == self._session.client.fileno():
                self._poll.unregister(number)  # else it would report the same again and again
                self._session.client_left()
        for caller in list(self._callers.values()):
            if time.monotonic() > caller.until:
                self._drop(caller, "said nothing")
        self._end_session()

    def _milliseconds(self) -> float | None:
        """Return how long to wait at most."""
        times = [caller.until for caller in self._callers.values()]
        if self._session is not None:
            times.append(self._session.until)
        return max(0.0, min(times) - time.monotonic()) * 1e3 + 1 if times else None

    def _accept(self) -> None:
        with contextlib.suppress(OSError):  # it has left already
            connection, (host, port, *_) = self._listener.accept()
            connection.setblocking(False)
            if len(self._callers) == MOST_CALLERS:
                self._drop(next(iter(self._callers.values())), "made way for others")
            caller = Caller(connection, f"{host}:{port}", time.monotonic() + HANDSHAKE_S)
            self._callers[connection.fileno()] = caller
            self._poll.register(connection, READABLE)

    def _hear(self, caller: Caller, folder: Path) -> None:
        """Read on, and answer a request that is complete."""
        try:
            request = caller.read()
            if request is not None:
                self._forget(caller)
                self._answer(caller, request, folder)
        except BlockingIOError:
            return
        except Exception as error:  # whatever goes wrong for one client, the next one is served
            self._drop(caller, str(error))

    def _answer(self, caller: Caller, request: handshake.Request, folder: Path) -> None:
        """Refuse a client, tell it facts, or start its session: nothing is started before the checks."""
        refusal = self._refusal(request)
        if refusal is not None:
            self._say(f"{caller.name}: refused: {refusal}")
            caller.connection.sendall(handshake.refusal(refusal))
        elif request.asks:
            caller.connection.sendall(handshake.facts(self._key, self.describe()))
        elif self._session is not None:
            caller.connection.sendall(handshake.refusal("another has a session"))
        else:
            return self._start(caller, request.timeout_s or self._longest_s, folder)
        caller.connection.close()

    def _refusal(self, request: handshake.Request) -> str | None:
        """Return why a client may not do what it asks for; without the token it learns nothing else."""
        if not hmac.compare_digest(request.token.encode(), self._token.encode()):
            return "the token is not the server's"
        if not hmac.compare_digest(request.key.encode(), self._key.encode()):
            return f"there is no key {request.key!r} here: the server's key is {self._key!r}"
        if (request.timeout_s or 0) > self._longest_s:
            return f"sessions last at most {self._longest_s:g} s here, not {request.timeout_s:g} s"
        return None

    def _start(self, caller: Caller, seconds: float, folder: Path) -> None:
        others = [self._listener, *(other.connection for other in self._callers.values())]
        self._session = BoardSession(caller.connection, self._key, seconds, folder, others, self._clocks_root)
        self._poll.register(caller.connection, select.POLLRDHUP)
        self._poll.register(self._session.alive.fileno(), select.POLLHUP)
        self._say(f"{caller.name}: session of at most {seconds:g} s")

    def _end_session(self) -> None:
        if self._session is None:
            return
        numbers = (self._session.client.fileno(), self._session.alive.fileno())
        ended = self._session.end()
        if ended is None:
            return
        for number in numbers:
            with contextlib.suppress(KeyError):
                self._poll.unregister(number)
        self._session = None
        self._say(f"session {ended}")

    def _drop(self, caller: Caller, reason: str) -> None:
        self._say(f"{caller.name}: dropped: {reason}")
        self._forget(caller)
        caller.connection.close()

    def _forget(self, caller: Caller) -> None:
        if self._callers.pop(caller.connection.fileno(), None) is not None:
            self._poll.unregister(caller.connection)
