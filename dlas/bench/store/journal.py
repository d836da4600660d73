"""Append-only text files: one writer, and every line is written whole or not at all."""

from __future__ import annotations

import errno
import fcntl
import os
from pathlib import Path


class FileInUse(Exception):
    """Another process is writing to the file."""


def in_use(path: Path) -> bool:
    """Return whether a process is writing to a journal."""
    try:
        file = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except FileNotFoundError:
        return False
    try:
        fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(file)
    return False


class Journal:
    """The one writer of a file of lines.

    Parameters
    ----------
    path : Path
        Created if it does not exist. An incomplete last line, left by a writer that was
        killed, is removed.

    Raises
    ------
    FileInUse
        If another process is writing to the file.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o644)
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            os.close(self._file)
            raise FileInUse(str(path)) from None
        self._truncate_torn_line()

    def append(self, line: str) -> None:
        """Write a line, newline included, so that it survives a crash, or not at all.

        Raises
        ------
        OSError
            If the disk is full; the file is left as it was.
        """
        content = line.encode()
        end = os.fstat(self._file).st_size
        try:
            if os.write(self._file, content) != len(content):
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(self.path))
            os.fsync(self._file)
        except OSError:
            os.ftruncate(self._file, end)
            raise

    def close(self) -> None:
        """Release the file, even if a process forked in the meantime still has it open."""
        fcntl.flock(self._file, fcntl.LOCK_UN)
        os.close(self._file)

    def _truncate_torn_line(self) -> None:
        end = os.fstat(self._file).st_size
        position = end
        while position > 0:
            start = max(0, position - 65536)
            chunk = os.pread(self._file, position - start, start)
            newline = chunk.rfind(b"\n")
            if newline >= 0:
                position = start + newline + 1
                break
            position = start
        if position != end:
            os.ftruncate(self._file, position)
