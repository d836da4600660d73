"""Locks that processes hold on files."""

from __future__ import annotations

import fcntl
import os
from pathlib import Path


def take_lock(path: Path) -> int | None:
    """Return a file descriptor that holds the lock at ``path``, or None while another process does.

    Closing the descriptor (or dying) releases the lock.
    """
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
    os.utime(descriptor)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(descriptor)
        return None
    return descriptor


def _alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True
