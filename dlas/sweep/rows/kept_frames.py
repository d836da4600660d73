"""Tables of large files of rows, kept from one command to the next in the cache.

A table is found by the content of its files, so that it is never out of date, and is read only if it has the
digest that it was written with.  One that cannot be written or read is made from the rows.
"""

from __future__ import annotations

import hashlib
import os
import time
import uuid
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow
import pyarrow.feather

from dlas.bench.store.cache import default_root
from dlas.bench.store.fingerprint import file_digest
from dlas.sweep.rows.columns import SAMPLES
from dlas.sweep.rows.files import results_file

FOLDER = "tables"
LEAST_BYTES = {".jsonl": 16 * 2**20, ".xz": 2**20}
"""Files smaller than this, plain and packed, are read faster than it takes to look."""
MOST_BYTES = 2 * 2**30
"""Of all kept tables; the oldest go first."""
PACKAGE = Path(__file__).parents[2]
CODE = ("stack", "sweep/rows")
"""Folders of the package whose code decides what a table says."""


def is_large(folders: Sequence[str]) -> bool:
    """Return whether the rows of folders are enough to keep their table."""
    files = [results_file(Path(folder)) for folder in folders]
    return any(path.stat().st_size >= LEAST_BYTES[path.suffix] for path in files)


def key_of(folders: Sequence[str]) -> str:
    """Return what a table follows from: rows, the names of their folders, code and libraries."""
    found = hashlib.blake2b(digest_size=16)
    for part in _parts(folders):
        found.update(part.encode() + b"\0")
    return found.hexdigest()


def _parts(folders: Sequence[str]) -> Iterator[str]:
    for folder in folders:
        yield from (folder, file_digest(results_file(Path(folder))))
    for path in sorted(source for place in CODE for source in (PACKAGE / place).glob("*.py")):
        yield from (path.name, file_digest(path))
    yield from (pd.__version__, pyarrow.__version__, np.__version__)


def recall(key: str) -> pd.DataFrame | None:
    """Return a kept table, None where there is none that is whole."""
    for path in (default_root() / FOLDER).glob(f"{key}-*.feather"):
        with suppress(OSError, pyarrow.ArrowException):
            if path.stem.partition("-")[2] == file_digest(path):
                frame = _restored(pyarrow.feather.read_feather(path))
                os.utime(path)
                return frame
    return None


def keep(key: str, frame: pd.DataFrame) -> None:
    """Keep a table for the next command; a disk that is full or not to be written keeps none."""
    folder = default_root() / FOLDER
    writing = folder / f"{uuid.uuid4().hex}.writing"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        pyarrow.feather.write_feather(frame, str(writing), compression="lz4")
        writing.rename(folder / f"{key}-{file_digest(writing)}.feather")
        _bound(folder)
    except (OSError, pyarrow.ArrowException):
        with suppress(OSError):
            writing.unlink()


def _bound(folder: Path) -> None:
    """Delete the tables that were used longest ago, and what a killed process left."""
    left = MOST_BYTES
    for path, used, size in sorted(_files(folder), key=lambda each: -each[1]):
        left -= size
        if left < 0 or (path.suffix == ".writing" and time.time() - used > 3600):
            with suppress(OSError):
                path.unlink()


def _files(folder: Path) -> Iterable[tuple[Path, float, int]]:
    for path in folder.iterdir():
        with suppress(OSError):
            found = path.stat()
            yield path, found.st_mtime, found.st_size


def _restored(frame: pd.DataFrame) -> pd.DataFrame:
    """Return a table as it was kept: cells of samples hold arrays of their own."""
    samples = np.empty(len(frame), dtype=object)
    samples[:] = [np.array(cell, dtype=float) for cell in frame[SAMPLES]]
    frame[SAMPLES] = samples
    return frame
