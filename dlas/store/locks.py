"""Locks that processes hold on files."""

from __future__ import annotations

import fcntl
import os
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
    return Lock(descriptor)


def is_alive(pid: int) -> bool:
    """Return whether a process with this id exists."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True
