"""Atomic replacement of files: a reader sees the old content or the new, never a mixture."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """Yield a path to write to; on exit it replaces ``path``, or is deleted if writing failed.

    Nothing is synced to the disk: a killed process leaves a complete file, a power cut may not.

    Parameters
    ----------
    path : Path

    Yields
    ------
    Path
        In the same folder, unique to this process.

    Raises
    ------
    OSError
        If it cannot replace ``path``.
    """
    partial = path.with_name(f".{path.name}.{os.getpid()}.partial")
    try:
        yield partial
        os.replace(partial, path)
    finally:
        with suppress(OSError):  # a missing folder has already failed the write
            partial.unlink(missing_ok=True)
