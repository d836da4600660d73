from __future__ import annotations

import json
import socket
from collections.abc import Sequence

import pytest

from dlas.bench.measuring import on_board
from dlas.bench.remote import handshake
from dlas.bench.remote.address import Address
from dlas.bench.remote.asking import ask
from dlas.bench.remote.connection import connect, reaching
from dlas.bench.store.fingerprint import versions
from dlas.errors import SessionTimeout, Unreachable
from tests.fixtures.remote import KEY, answering

HERE = versions(["apache-tvm"])["apache-tvm"]


def told(tvm: str | None, busy_s: float | None, code: str | None) -> dict[str, object]:
    """Return what a server says of itself."""
    machine = {"machine": {"cpu": "A"}, "flags": ["asimd"]}
    return {"tvm": tvm, "code": code or on_board.code(), **machine, "busy_s": busy_s}


def facts(tvm: str | None = HERE, busy_s: float | None = None, code: str | None = None) -> tuple[bytes]:
    return (handshake.facts(KEY, told(tvm, busy_s, code)),)


def sized(content: bytes) -> bytes:
    return handshake.NUMBER.pack(len(content)) + content


WELCOME = handshake.NUMBER.pack(handshake.MAGIC)
REFUSED = handshake.NUMBER.pack(handshake.REFUSED)


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        ((), "closed without an answer; does `dlas serve` run behind the SSH tunnel"),
        ((b"SSH-2.0-OpenSSH_9.6\r\n",), "what answers there is not `dlas serve`"),
        ((WELCOME, sized(b"server:desk")), "what answers there is not `dlas serve`"),
        ((WELCOME, sized(b"\xff")), "what answers there is not `dlas serve`"),
        ((WELCOME, handshake.NUMBER.pack(2**30)), "what answers there is not `dlas serve`"),
        ((handshake.welcome(KEY), sized(b"{}")), "what answers there is not `dlas serve`"),
        ((handshake.welcome(KEY), sized(b"[1]")), "what answers there is not `dlas serve`"),
        ((handshake.welcome(KEY),), "closed without an answer"),
        ((REFUSED,), "TVM's own server with another key"),
        ((handshake.refusal("the token is not the server's"),), "the token is not the server's"),
        ((handshake.refusal("red \x1b[31m\n" + "x" * 999),), r"red \[31mx{290,300}$"),
        (facts(tvm="0.26.0"), f"TVM 0.26.0 there and {HERE} here must be the same: install"),
    ],
)
def test_each_answer_that_is_no_session_has_its_message(answer: Sequence[bytes], message: str) -> None:
    with answering(answer) as address, pytest.raises(Unreachable, match=message) as caught:
        connect(address)
    assert str(caught.value).startswith(f"desk at 127.0.0.1:{address.port}: ")
    assert "\n" not in str(caught.value)


def test_a_server_that_says_nothing_is_not_waited_for() -> None:
    with answering(None) as address, pytest.raises(Unreachable, match=r"no answer within 0.1 s"):
        ask(address, 0.1)


def test_no_server_has_its_message() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
    with pytest.raises(Unreachable, match="no server; run `dlas serve --key desk` there"):
        connect(Address("127.0.0.1", port, KEY, "a-token-of-a-test"))
    with pytest.raises(Unreachable, match="no machine has this name"):
        connect(Address("no.such.machine.invalid", port, KEY, "a-token-of-a-test"))


def test_a_server_that_goes_away_while_one_waits_is_told() -> None:
    gone = pytest.raises(Unreachable, match=r"no server; .* went away while this waited")
    with answering(facts(busy_s=3.0)) as address, gone:
        connect(address)


def test_a_server_that_stays_busy_is_not_waited_for() -> None:
    busy = pytest.raises(Unreachable, match=r"busy for more than 0.1 s .* this one for 4 s")
    with answering(facts(busy_s=3.0), facts(busy_s=3.7)) as address, busy:
        connect(address, wait_s=0.1)


@pytest.mark.parametrize(
    ("said", "message"),
    [
        (
            "RPCSessionTimeoutError: stopped at its time limit of 3 s\nat x",
            "stopped at its time limit of 3 s$",
        ),
        ("RPCSessionEndedError: killed by SIGSEGV", "the session was killed by SIGSEGV"),
        ("SockChannel::Recv Error:Connection reset by peer", "the connection is lost"),
        ("SockChannel::Recv Error:Connection timed out", "the board does not answer any more"),
    ],
)
def test_a_session_that_ends_makes_its_device_unreachable(said: str, message: str) -> None:
    address = Address("127.0.0.1", 1, KEY, "a-token-of-a-test")
    kind = SessionTimeout if "Timeout" in said else Unreachable
    with pytest.raises(kind, match=message), reaching(address):
        raise RuntimeError(said)


def test_errors_of_programs_stay_what_they_are() -> None:
    address = Address("127.0.0.1", 1, KEY, "a-token-of-a-test")
    with pytest.raises(ValueError, match="of the program"), reaching(address):
        raise ValueError("of the program")
    with pytest.raises(Unreachable, match=r"^as it was$"), reaching(address):
        raise Unreachable("as it was")


def test_answers_are_json_of_bounded_size() -> None:
    content = handshake.facts(KEY, {"tvm": HERE})
    assert json.loads(content[len(handshake.welcome(KEY)) + 4 :]) == {"tvm": HERE}
