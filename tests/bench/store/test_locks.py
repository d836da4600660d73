from __future__ import annotations

import os
import signal
import threading
from pathlib import Path

import pytest

from dlas.bench.store.locks import is_alive, locked, take_lock, while_used


def test_a_killed_owner_leaves_no_lock(tmp_path: Path) -> None:
    reading, writing = os.pipe()
    pid = os.fork()
    if pid == 0:
        held = take_lock(tmp_path / "lock")
        os.write(writing, b"." if held else b"!")
        signal.pause()
    assert os.read(reading, 1) == b"."
    assert take_lock(tmp_path / "lock") is None
    assert is_alive(pid)
    os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)
    assert take_lock(tmp_path / "lock") is not None
    assert not is_alive(pid)


def test_a_process_forked_meanwhile_does_not_keep_a_released_lock(tmp_path: Path) -> None:
    held = take_lock(tmp_path / "lock")
    assert held is not None
    pid = os.fork()
    if pid == 0:
        signal.pause()
    held.release()
    again = take_lock(tmp_path / "lock")
    assert again is not None
    again.release()
    os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)


def test_taking_a_lock_renews_its_file(tmp_path: Path) -> None:
    path = tmp_path / "lock"
    path.touch()
    os.utime(path, (0, 0))
    held = take_lock(path)
    assert held is not None and path.stat().st_mtime > 0
    held.release()


def test_a_file_is_there_for_as_long_as_anyone_uses_it(tmp_path: Path) -> None:
    path, turn = tmp_path / "file", tmp_path / "turn"
    made: list[int] = []

    def make() -> Path:
        if not path.exists():
            made.append(path.write_text("content"))
        return path

    with while_used(make, turn) as first:
        with while_used(make, turn) as second:
            assert first == second == path
        assert path.read_text() == "content" and len(made) == 1
    assert not path.exists()
    with pytest.raises(RuntimeError), while_used(make, turn):
        raise RuntimeError
    assert not path.exists() and len(made) == 2


def test_what_waits_for_a_lock_has_it_next(tmp_path: Path) -> None:
    done: list[str] = []

    def wait() -> None:
        with locked(tmp_path / "lock"):
            done.append("second")

    with locked(tmp_path / "lock"):
        thread = threading.Thread(target=wait)
        thread.start()
        thread.join(0.1)
        done.append("first")
    thread.join(10)
    assert done == ["first", "second"]
