from __future__ import annotations

import os
import signal
from pathlib import Path

from dlas.store.locks import is_alive, take_lock


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
