"""Locks that processes hold on files."""

from __future__ import annotations

import fcntl
import os
from pathlib import Path

# Not filelock: on a file system without flock its lock is a file that stays where its owner was killed,
# and it does not renew the file's time, by which Cache.tidy tells what is in use.


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
        """Let others take it, also where a process forked meanwhile still holds the file open."""
        fcntl.flock(self._descriptor, fcntl.LOCK_UN)
        os.close(self._descriptor)


def take_lock(path: Path) -> Lock | None:
    """Return the lock on a file, which is created if it is not there; None while it is held elsewhere."""
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
    os.utime(descriptor)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(descriptor)
        return None
    return Lock(descriptor)


def is_alive(pid: int) -> bool:
    """Return whether there is a process of that number."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True
