"""Ask a server on a board what it is, without a session: every wait has a limit."""

from __future__ import annotations

import json
import socket
import time
from dataclasses import dataclass
from typing import Any

from dlas.bench.remote import handshake
from dlas.bench.remote.address import Address
from dlas.errors import Unreachable

ANSWER_S = 10.0
"""Longest wait for a server's answer, which needs no session."""
MOST_CHARACTERS = 300


@dataclass(frozen=True)
class Answer:
    """What a server says of itself."""

    tvm: str
    """The version of TVM there."""
    code: str
    """The digest of the code that measures there, see :func:`dlas.bench.measuring.on_board.code`."""
    machine: dict[str, Any]
    """What :meth:`dlas.bench.measuring.machine.Machine.describe` returns there."""
    flags: list[str]
    """The processor's features as the kernel there lists them."""
    busy_s: float | None
    """For how many seconds it has had a session; None if it has none."""
    number: str
    """The host's address as a number."""


class Stream:
    """A connection that gives up at a time.

    Parameters
    ----------
    opened : socket.socket
    until : float
        On the clock of ``time.monotonic``.
    """

    def __init__(self, opened: socket.socket, until: float) -> None:
        self._socket, self._until = opened, until

    def number(self) -> int:
        """Return the next four bytes as a number."""
        return int(handshake.NUMBER.unpack(self.read(handshake.NUMBER.size))[0])

    def sized(self) -> bytes:
        """Return the next bytes, as many as the number before them says.

        Raises
        ------
        Malformed
            If that is more than an answer may have.
        """
        length = self.number()
        if not 0 <= length <= handshake.MOST_ANSWER_BYTES:
            raise handshake.Malformed("too long an answer")
        return self.read(length)

    def read(self, length: int) -> bytes:
        """Return exactly so many bytes.

        Raises
        ------
        TimeoutError
            If they have not come by then.
        EOFError
            If the other end closes before.
        """
        content = b""
        while len(content) < length:
            left = self._until - time.monotonic()
            if left <= 0:
                raise TimeoutError
            self._socket.settimeout(left)
            more = self._socket.recv(length - len(content))
            if not more:
                raise EOFError
            content += more
        return content


def ask(address: Address, limit_s: float = ANSWER_S) -> Answer:
    """Return what the server on a board says of itself, also while it has a session.

    Raises
    ------
    Unreachable
        If there is no server, or another one, or it refuses the token or the key.
    """
    try:
        with socket.create_connection((address.host, address.port), limit_s) as opened:
            # The time limit too, so that a server that refuses it says so before a session is asked for.
            request = handshake.Request(address.key, address.token, address.timeout_s, asks=True)
            opened.sendall(request.encode())
            return _answer(address, Stream(opened, time.monotonic() + limit_s), opened.getpeername()[0])
    except TimeoutError:
        raise Unreachable(f"{address}: no answer within {limit_s:g} s") from None
    except (EOFError, ConnectionResetError, BrokenPipeError):
        raise Unreachable(
            f"{address}: closed without an answer; does `dlas serve` run behind the SSH tunnel?"
        ) from None
    except ConnectionRefusedError:
        raise Unreachable(
            f"{address}: no server; run `dlas serve --key {address.key}` there, and open the SSH tunnel"
        ) from None
    except socket.gaierror:
        raise Unreachable(f"{address}: no machine has this name") from None
    except OSError as error:
        raise Unreachable(f"{address}: {error.strerror or error}") from None
    except (ValueError, KeyError, TypeError):
        raise Unreachable(f"{address}: what answers there is not `dlas serve`") from None


def _answer(address: Address, stream: Stream, number: str) -> Answer:
    """Return the facts that a server sends, or raise the reason why it refuses."""
    code = stream.number()
    if code == handshake.REFUSED:
        raise Unreachable(f"{address}: {_reason(stream)}")
    if code != handshake.MAGIC or not stream.sized().decode().endswith(handshake.MARK):
        raise handshake.Malformed("not this server")
    facts = json.loads(stream.sized())
    busy = facts["busy_s"]
    return Answer(
        str(facts["tvm"]),
        str(facts.get("code")),
        dict(facts["machine"]),
        [str(flag) for flag in facts["flags"]],
        None if busy is None else float(busy),
        number,
    )


def _reason(stream: Stream) -> str:
    """Return why a server refuses; TVM's own closes without a word."""
    try:
        reason = str(json.loads(stream.sized())["reason"])
    except EOFError:
        return "TVM's own server with another key answers there, not `dlas serve`"
    return "".join(character for character in reason if character.isprintable())[:MOST_CHARACTERS]
