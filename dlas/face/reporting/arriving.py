"""The rows of folders as they arrive: files are read on from where the last look ended."""

from __future__ import annotations

import json
import os
import statistics
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from dlas.sweep.rows.files import FILE
from dlas.sweep.rows.labels import label, milliseconds

ALL_BYTES, FEW_BYTES = 2**26, 2**20
"""Of a file that are read in one look: while nothing is measured, and at any time."""
NAMED = ("model", "compression", "algorithm", "compiler")
"""Axes that name a row in a line."""


@dataclass
class _File:
    """A results file that is read on."""

    path: Path
    inode: int = 0
    read: int = 0
    """Bytes that are known."""
    statuses: dict[str, str] = field(default_factory=dict)
    """By the row's id."""


class ArrivingRows:
    """How many rows folders have, how they ended, and the last one.

    Parameters
    ----------
    folders : sequence of Path
        Packed files, which no sweep writes, are left out.
    """

    def __init__(self, folders: Sequence[Path]) -> None:
        self._files = [_File(folder / FILE) for folder in folders]
        self.latest = ""
        """The row that came last, in words; empty before the first look that finds one."""

    @property
    def statuses(self) -> Counter[str]:
        """Numbers of rows by status."""
        return Counter(status for file in self._files for status in file.statuses.values())

    def look(self, most: int = ALL_BYTES) -> None:
        """Read what has come since the last look, at most so many bytes of each file."""
        for file in self._files:
            self._read_on(file, most)

    def _read_on(self, file: _File, most: int) -> None:
        try:
            with file.path.open("rb") as stream:
                about = os.fstat(stream.fileno())
                if about.st_ino != file.inode or about.st_size < file.read:
                    file.inode, file.read, file.statuses = about.st_ino, 0, {}
                stream.seek(file.read)
                content = stream.read(most)
        except OSError:  # it is not there yet
            return
        whole = content[: content.rfind(b"\n") + 1]
        file.read += len(whole)
        for line in whole.splitlines():
            self._take(file, line)

    def _take(self, file: _File, line: bytes) -> None:
        """Note a row; a damaged line is none, of which the page tells."""
        try:
            row = json.loads(line)
            file.statuses[str(row["id"])] = str(row["status"])
            self.latest = _in_words(row)
        except (ValueError, TypeError, KeyError):
            return


def _in_words(row: dict[str, Any]) -> str:
    names = " / ".join(label(row[axis]) for axis in NAMED)
    if row["status"] != "ok":
        return f"{names}: {row['status']}"
    return f"{names}: {milliseconds(statistics.median(row['latency_s']))} ms"
