"""The rows of folders as they arrive: files are read on from where the last look ended."""

from __future__ import annotations

import json
import os
import statistics
import sys
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
    rows: dict[str, tuple[str, str]] = field(default_factory=dict)
    """The status of a row and the name of its machine, by its id."""


class ArrivingRows:
    """How many rows folders have, how they ended, of which machines they are, and the last one.

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
        return Counter(status for file in self._files for status, _ in file.rows.values())

    @property
    def machines(self) -> Counter[str]:
        """Numbers of rows by the name of the machine that measured them."""
        return Counter(machine for file in self._files for _, machine in file.rows.values() if machine)

    def look(self, most: int = ALL_BYTES) -> None:
        """Read what has come since the last look, at most so many bytes of each file."""
        for file in self._files:
            self._read_on(file, most)

    def _read_on(self, file: _File, most: int) -> None:
        try:
            with file.path.open("rb") as stream:
                about = os.fstat(stream.fileno())
                if about.st_ino != file.inode or about.st_size < file.read:
                    file.inode, file.read, file.rows = about.st_ino, 0, {}
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
            machine = row.get("environment", {}).get("host", {}).get("name")
            file.rows[str(row["id"])] = sys.intern(str(row["status"])), sys.intern(str(machine or ""))
            self.latest = _in_words(row)
        except (ValueError, TypeError, KeyError, AttributeError):
            return


def _in_words(row: dict[str, Any]) -> str:
    names = " / ".join(label(row[axis]) for axis in NAMED)
    if row["status"] != "ok":
        return f"{names}: {row['status']}"
    return f"{names}: {milliseconds(statistics.median(row['latency_s']))} ms"
