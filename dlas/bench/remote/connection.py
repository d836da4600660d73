"""Open sessions on a board: no call blocks for ever, and each failure has one message."""

from __future__ import annotations

import contextlib
import os
import re
import socket
import stat
import threading
import time
from collections.abc import Iterator
from typing import TYPE_CHECKING

from dlas.bench.measuring import on_board
from dlas.bench.remote import handshake
from dlas.bench.remote.address import Address
from dlas.bench.remote.asking import ANSWER_S, Answer, ask
from dlas.bench.store.fingerprint import versions
from dlas.errors import SessionEnded, SessionTimeout, Unreachable

if TYPE_CHECKING:
    from tvm.rpc import RPCSession

TVM = "apache-tvm"
OTHER_CODE = "the DLAS there measures by other code than this one: install this one's wheel there"
RETRY_S = 1.0
"""How often a client that waits asks again: rarely, for the board is measuring."""
SILENCE = {"TCP_KEEPIDLE": 10, "TCP_KEEPINTVL": 5, "TCP_KEEPCNT": 4, "TCP_USER_TIMEOUT": 120_000}
"""Half a minute after a board has lost its power, calls on it fail instead of waiting for ever; two
minutes (TCP_USER_TIMEOUT, in ms) where it was receiving."""


def connect(address: Address, wait_s: float | None = None) -> RPCSession:
    """Open a session on a board; it ends when the object is deleted, or at the address's time limit.

    Parameters
    ----------
    wait_s : float, optional
        How long to wait while another has a session; by default as long as one's own may take.

    Raises
    ------
    Unreachable
        If there is no server, it refuses the token or the key, it goes away while this waits,
        it has another version of TVM, or it stays busy.
    """
    limit = address.timeout_s if wait_s is None else wait_s
    until = time.monotonic() + limit
    answer = _compatible(address, ask(address))
    while True:
        if answer.busy_s is None:
            with contextlib.suppress(_Taken):
                return _open(address, answer)
        if time.monotonic() >= until:
            busy = "" if answer.busy_s is None else f", this one for {answer.busy_s:.0f} s"
            raise Unreachable(f"{address}: busy for more than {limit:g} s with sessions of others{busy}")
        time.sleep(RETRY_S)
        try:
            answer = ask(address)
        except Unreachable as error:
            raise Unreachable(f"{error} (it was there, and went away while this waited)") from None


@contextlib.contextmanager
def reaching(address: Address) -> Iterator[None]:
    """Raise :class:`~dlas.errors.Unreachable` for errors of a session whose connection has ended.

    Raises
    ------
    Unreachable
        If the server, the board or the session is gone.
    SessionEnded
        If the session is gone and the server is not, which says how the session ended.
    SessionTimeout
        If the session has reached its time limit.
    """
    try:
        yield
    except Unreachable:
        raise
    except Exception as error:
        if said := SAID.search(str(error)):
            raise KINDS[said[1]](f"{address}: the session was {said[2]}") from None
        reason = next((reason for words, reason in LOST.items() if words in str(error)), None)
        if reason is None:
            raise
        raise Unreachable(f"{address}: {reason}") from None


SAID = re.compile(r"RPCSession(Timeout|Ended)Error: ([^\n]*)")
"""What the server says as the last thing in a session."""
KINDS = {"Timeout": SessionTimeout, "Ended": SessionEnded}
LOST = {
    "Connection timed out": "the board does not answer any more",
    "Connection reset by peer": "the connection is lost: the session or the board has ended",
    "Broken pipe": "the connection is lost: the session or the board has ended",
    "RPCCode::kReturn": "the connection is lost: the session has ended before",
}
"""What a connection's end means, by what TVM says of it."""


class _Taken(Exception):
    """Another client got the session first."""


def _compatible(address: Address, answer: Answer) -> Answer:
    """Return the answer of a server with the same TVM and DLAS as here: code and messages must agree."""
    here = versions([TVM])[TVM]
    if answer.tvm != here:
        raise Unreachable(
            f"{address}: TVM {answer.tvm} there and {here} here must be the same: install {TVM}=={here} there"
        )
    if answer.code != on_board.code():
        raise Unreachable(f"{address}: {OTHER_CODE}")
    return answer


def _open(address: Address, answer: Answer) -> RPCSession:
    """Open a session, in a thread of its own, since TVM waits without limit for what a server sends."""
    from tvm import rpc

    opened: list[RPCSession | Exception] = []

    def work() -> None:
        request = handshake.Request(address.key, address.token)
        try:
            opened.append(rpc.connect(answer.number, address.port, request.options(), address.timeout_s))
        except Exception as error:
            opened.append(error)

    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    thread.join(ANSWER_S)
    if not opened:
        raise Unreachable(f"{address}: no session within {ANSWER_S:g} s")
    if not isinstance(opened[0], Exception):
        _notice_silence(answer.number, address.port)
        return opened[0]
    text = str(opened[0]).replace(address.token, "...")
    if "cannot find server" in text:
        raise _Taken
    raise Unreachable(f"{address}: no session: {text.strip().splitlines()[-1]}")


def _notice_silence(number: str, port: int) -> None:
    """Let the kernel ask after a silent board, on the sockets that TVM opened there."""
    for name in os.listdir("/proc/self/fd"):
        with contextlib.suppress(OSError):  # the folder's own descriptor is closed by now
            if stat.S_ISSOCK(os.fstat(int(name)).st_mode):
                with socket.socket(fileno=os.dup(int(name))) as found:
                    if found.getpeername()[:2] == (number, port):
                        _limit_silence(found)


def _limit_silence(connection: socket.socket) -> None:
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for option, value in SILENCE.items():
        connection.setsockopt(socket.IPPROTO_TCP, getattr(socket, option), value)
