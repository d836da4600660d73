"""Files that are replaced in one step: who reads one finds the old content or the new, never half of it."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """Give a path to write to; at the end it replaces ``path``, or is deleted if writing failed.

    Nothing is synced to the disk: a kill leaves a whole file, a power cut may not.

    Parameters
    ----------
    path : Path

    Yields
    ------
    Path
        In the same folder, of this process alone.

    Raises
    ------
    OSError
        If it cannot be put in the place of ``path``.
    """
    partial = path.with_name(f".{path.name}.{os.getpid()}.partial")
    try:
        yield partial
        os.replace(partial, path)
    finally:
        with suppress(OSError):  # of a folder that is not there, writing has complained
            partial.unlink(missing_ok=True)
