from __future__ import annotations

import contextlib
import os
import random
import signal
import socket
import stat
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from tvm import rpc

from dlas.axes.hardware import diagnosis
from dlas.axes.hardware.profile import Profile
from dlas.bench.remote import handshake
from dlas.bench.remote.address import Address
from dlas.bench.remote.asking import ask
from dlas.bench.remote.connection import connect, reaching
from dlas.errors import SessionTimeout, Unreachable
from tests.fixtures.boards import board_profile
from tests.fixtures.commands import runner
from tests.fixtures.processes import running, wait_for
from tests.fixtures.remote import KEY, Served, served


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with served(tmp_path_factory.mktemp("server")) as running_server:
        yield running_server


@pytest.fixture(autouse=True)
def serves_afterwards(server: Served) -> Iterator[None]:
    """After each test the server is free, has no process left, and gives a session that works."""
    yield
    wait_for(lambda: ask(server.address()).busy_s is None)
    assert server.sessions() == []
    assert one_more(server.address(), 1) == 2
    wait_for(lambda: ask(server.address()).busy_s is None)


def one_more(address: Address, number: int) -> int:
    """Have a number increased in a session."""
    with reaching(address):
        return int(connect(address).get_function("rpc.test.addone")(number))


def knock(server: Served, content: bytes) -> socket.socket:
    """Send bytes to a server."""
    connection = socket.create_connection(("127.0.0.1", server.port), 10)
    connection.sendall(content)
    return connection


def test_the_token_is_kept_for_its_owner_and_never_printed(server: Served) -> None:
    assert stat.S_IMODE(server.token_file.stat().st_mode) == 0o600
    assert str(server.token_file) in server.said()
    assert server.token_file.read_text().strip() not in server.said()


def test_a_server_tells_its_machine_with_and_without_a_session(server: Served) -> None:
    before = ask(server.address())
    session = connect(server.address())
    during = ask(server.address())
    assert session and before.busy_s is None and during.busy_s is not None and during.busy_s > 0
    assert before.machine["cpu"] and (during.machine, during.flags) == (before.machine, before.flags)


@pytest.mark.parametrize("token", ["another-token-of-a-test", ""])
def test_without_the_token_nothing_is_started(server: Served, token: str) -> None:
    before = len(server.said())
    address = Address("127.0.0.1", server.port, KEY, token)
    with pytest.raises(Unreachable, match="the token is not the server's"):
        connect(address)
    with pytest.raises(Exception, match="cannot find server"):  # a client that does not ask before
        rpc.connect("127.0.0.1", server.port, f"{KEY} -token={token}", session_timeout=10)
    with pytest.raises(Exception, match="cannot find server"):  # nor knows of tokens
        rpc.connect("127.0.0.1", server.port, KEY, session_timeout=10)
    assert "session" not in server.said()[before:]
    assert server.said()[before:].count("refused: the token") == 3


def test_the_name_of_a_server_is_told_only_to_who_has_its_token(server: Served) -> None:
    with pytest.raises(Unreachable, match="no key 'other' here: the server's key is 'desk'"):
        connect(server.address(key="other"))
    with pytest.raises(Unreachable, match="the token is not the server's"):
        connect(Address("127.0.0.1", server.port, "other", "another-token-of-a-test"))


def test_sessions_are_not_longer_than_the_server_allows(server: Served) -> None:
    with pytest.raises(Unreachable, match="sessions last at most 3600 s here, not 3601 s"):
        connect(server.address(3601.0))


def test_one_session_at_a_time_and_the_next_one_waits(server: Served) -> None:
    first = connect(server.address())
    assert len(server.sessions()) == 1
    with pytest.raises(Unreachable, match="busy for more than 0 s"):
        connect(server.address(), wait_s=0)
    with pytest.raises(Exception, match="cannot find server"):  # a client that does not ask before
        rpc.connect("127.0.0.1", server.port, f"{KEY} -token={server.address().token}", session_timeout=10)
    results: list[int] = []
    waiting = threading.Thread(target=lambda: results.append(one_more(server.address(), 3)))
    waiting.start()
    time.sleep(0.1)
    assert results == []
    del first
    waiting.join(30)
    assert results == [4]


def test_a_session_that_hangs_ends_at_its_time_limit(server: Served) -> None:
    address = server.address(0.3)
    session = connect(address)
    os.kill(server.sessions()[0], signal.SIGSTOP)
    stopped = pytest.raises(SessionTimeout, match=r"the session was stopped at its time limit of 0.3 s")
    with stopped, reaching(address):
        session.get_function("rpc.test.addone")


def test_a_session_that_hangs_ends_when_its_client_leaves(server: Served) -> None:
    session = connect(server.address())
    os.kill(server.sessions()[0], signal.SIGSTOP)
    del session
    wait_for(lambda: "its client had left" in server.said())
    assert server.sessions() == []


def test_a_session_that_crashes_in_a_call_says_so(server: Served) -> None:
    address = server.address()
    session = connect(address)
    pid = server.sessions()[0]
    os.kill(pid, signal.SIGSTOP)

    def crash() -> None:
        for number in (signal.SIGSEGV, signal.SIGCONT):
            os.kill(pid, number)

    threading.Timer(0.1, crash).start()
    with pytest.raises(Unreachable, match=r"the session was killed by SIGSEGV"), reaching(address):
        session.get_function("rpc.test.addone")


@pytest.mark.parametrize("kills", [2, pytest.param(30, marks=pytest.mark.slow)])
def test_a_server_outlives_its_sessions(server: Served, kills: int) -> None:
    chance = random.Random(kills)
    for number in range(kills):
        address = server.address()
        session = connect(address)
        pid = server.sessions()[0]
        threading.Timer(chance.uniform(0, 0.02), os.kill, (pid, signal.SIGKILL)).start()
        with pytest.raises(Unreachable, match=r"connection is lost|killed by SIGKILL"), reaching(address):
            while True:
                session.upload(bytearray(chance.randbytes(chance.randrange(10**6))), "library.so")
        assert one_more(address, number) == number + 1
    assert running(server.pid)


def folder_of(server: Served) -> Path:
    """Return the folder that the session of a server works in."""
    (pid,) = server.sessions()
    return Path(os.readlink(f"/proc/{pid}/cwd"))


def test_an_upload_that_is_cut_off_leaves_nothing(server: Served) -> None:
    session = connect(server.address())
    session.upload(bytearray(100), "library.so")
    folder = folder_of(server)
    assert (folder / "library.so").stat().st_size == 100
    del session
    wait_for(lambda: not folder.exists())
    half = handshake.Request(KEY, server.address().token, 60.0).encode()
    with knock(server, half) as connection:
        assert connection.recv(4096).startswith(handshake.NUMBER.pack(handshake.MAGIC))
        connection.sendall((10**6).to_bytes(8, "little") + bytes(1000))
        folder = folder_of(server)
    wait_for(lambda: not folder.exists())


def test_uploads_stay_in_the_folder_of_their_session(server: Served) -> None:
    session = connect(server.address())
    for name in ("../library.so", "/library.so"):
        with pytest.raises(Exception, match="outside of the session's folder"):
            session.upload(bytearray(100), name)


@pytest.mark.parametrize("content", [b"", b"GET / HTTP/1.1\r\n\r\n", handshake.Request(KEY).encode()[:-3]])
def test_who_does_not_speak_the_handshake_holds_up_nobody(server: Served, content: bytes) -> None:
    with contextlib.ExitStack() as silent:
        for _ in range(20):
            silent.enter_context(knock(server, content))
        assert one_more(server.address(), 5) == 6


def test_the_doctor_finds_a_board_well(
    server: Served, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.delenv("DLAS_TOKEN", raising=False)
    board, dlas = board_profile(tmp_path, server), runner(tmp_path, monkeypatch, capsys)
    done = dlas("doctor", "--device", str(board))
    assert done.returncode == 0, done.stdout
    assert "one was opened, and has a device of kind llvm" in done.stdout
    assert server.token_file.read_text().strip() not in done.stdout
    wait_for(lambda: ask(server.address()).busy_s is None)
    first = connect(server.address())
    (check,) = [check for check in diagnosis.checks(Profile.read(board)) if check.name == "session"]
    assert check.status == "warn"
    assert "another one has lasted" in check.finding
    del first


def test_a_killed_server_takes_its_session_along_and_the_next_one_cleans_up(tmp_path: Path) -> None:
    with served(tmp_path) as first:
        session = connect(first.address())
        session.upload(bytearray(100), "library.so")
        (pid,), folder = first.sessions(), folder_of(first)
        os.kill(first.pid, signal.SIGKILL)
        wait_for(lambda: not running(pid))
        with pytest.raises(Unreachable, match="connection is lost"), reaching(first.address()):
            session.get_function("rpc.test.addone")
        assert folder.exists()
    with served(tmp_path, first.port) as second:
        assert one_more(second.address(), 7) == 8
        assert not folder.parent.exists()
