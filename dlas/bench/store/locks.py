"""Locks that processes hold on files."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

# Not filelock: on a file system without flock it leaves its lock file behind when the owner is killed, and it
# does not update the file's time, which Cache.tidy uses to see which locks are in use.


class Lock:
    """A lock that this process holds until it releases it or dies.

    Parameters
    ----------
    descriptor : int
        Of the locked file.
    """

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor

    def share(self) -> None:
        """Hold the lock beside others who share it, after waiting for one who does not."""
        fcntl.flock(self._descriptor, fcntl.LOCK_SH)

    def is_last(self) -> bool:
        """Return whether nobody else shares the lock, which is then held alone."""
        try:
            fcntl.flock(self._descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        return True

    def release(self) -> None:
        """Release the lock, even if a process forked in the meantime still has the file open."""
        fcntl.flock(self._descriptor, fcntl.LOCK_UN)
        os.close(self._descriptor)


def take_lock(path: Path) -> Lock | None:
    """Return the lock on a file, created if needed; None while another process holds it."""
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
    os.utime(descriptor)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(descriptor)
        return None
    with suppress(OSError):  # a full disk: the lock holds without it
        os.ftruncate(descriptor, 0)
        os.pwrite(descriptor, str(os.getpid()).encode(), 0)
    return Lock(descriptor)


def holder(path: Path) -> int | None:
    """Return the process that holds what :func:`take_lock` returned, or held it last; None if unknown."""
    try:
        return int(path.read_text())
    except (OSError, ValueError):
        return None


@contextmanager
def locked(path: Path) -> Iterator[None]:
    """Hold the lock on a file, created if needed, after waiting for others to release it."""
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
    os.utime(descriptor)
    lock = Lock(descriptor)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        lock.release()


@contextmanager
def while_used(make: Callable[[], Path], turn: Path) -> Iterator[Path]:
    """Yield a file that is there for as long as anyone uses it; the last one deletes it.

    Parameters
    ----------
    make : callable
        Writes the file, unless it is there, and returns its path.
    turn : Path
        A file on which those wait for each other who write or delete such files.
    """
    with locked(turn):
        path = make()
        used = Lock(os.open(path, os.O_RDONLY | os.O_CLOEXEC))
        used.share()
    try:
        yield path
    finally:
        with locked(turn):
            if used.is_last():
                path.unlink(missing_ok=True)
            used.release()


def is_alive(pid: int) -> bool:
    """Return whether a process with this id exists."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True
