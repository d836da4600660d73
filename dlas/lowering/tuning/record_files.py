"""Files of tuning records: JSON lines, appended and never edited, one file a workload."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

import pydantic

from dlas.bench.store.journal import FileInUse, Journal
from dlas.bench.store.replacing import replacing
from dlas.errors import InputError
from dlas.lowering.tuning.records import Entry, Header, Records, from_line, to_line

MOST_BYTES = 2**30
MOST_LINE_BYTES = 2**24
"""Limits for a file and for a line."""
SUFFIX = ".jsonl"
WAIT_SECONDS = 0.5
"""Interval of checks whether another writer has finished."""


class RecordFile:
    """A file of records and its one writer.

    Parameters
    ----------
    path : Path
    header : Header
        Written where the file is new.

    Raises
    ------
    FileInUse
        If another process is writing to it.
    InputError
        If the file is damaged or belongs to another workload.
    """

    def __init__(self, path: Path, header: Header) -> None:
        self._journal = Journal(path)
        try:
            self.records = self._read(path, header)
        except BaseException:
            self._journal.close()
            raise

    def _read(self, path: Path, header: Header) -> Records:
        sections = list(read_sections(path))
        if not sections:
            self._journal.append(to_line(header))
            return Records(header)
        if len(sections) > 1 or sections[0].header.key != header.key:
            raise InputError(f"{path}: not the records of {header.key}")
        return sections[0]

    def add(self, entry: Entry) -> None:
        """Add an entry and write it to the file."""
        self.records.add(entry)
        self._journal.append(to_line(entry))

    def __enter__(self) -> RecordFile:
        return self

    def __exit__(self, *_: object) -> None:
        self._journal.close()


class RecordStore:
    """A folder of records, one file a workload, that all studies share.

    Parameters
    ----------
    root : Path
        Created when something is written.
    """

    def __init__(self, root: Path) -> None:
        self.root = root

    def path(self, key: str) -> Path:
        """Return where the records of a key are."""
        return self.root / (key + SUFFIX)

    def open(self, header: Header, say: Callable[[str], None] = print) -> RecordFile:
        """Return the records of ``header`` for writing; wait while another process writes to them."""
        path = self.path(header.key)
        self.root.mkdir(parents=True, exist_ok=True)
        waiting = False
        while True:
            try:
                return RecordFile(path, header)
            except FileInUse:
                if not waiting:
                    say(f"waiting for another process that writes to {path}")
                waiting = True
                time.sleep(WAIT_SECONDS)

    def paths(self) -> list[Path]:
        """Return every file."""
        return sorted(self.root.glob("*" + SUFFIX))


def read_sections(path: Path) -> Iterator[Records]:
    """Yield the records in a file, one or more in an export; an incomplete last line is skipped.

    Raises
    ------
    InputError
        If it cannot be read or a line is not a record; names file and line.
    """
    section: Records | None = None
    number = 0
    try:
        for number, line in enumerate(_whole_lines(path), start=1):  # noqa: B007 - the handlers quote it
            entry = from_line(line)
            if isinstance(entry, Header):
                if section is not None:
                    yield section
                section = Records(entry)
            elif section is None:
                raise ValueError("the first line is no header")
            else:
                section.add(entry)
    except OSError as error:
        raise InputError(f"cannot read the records {str(path)!r}: {error.strerror}") from None
    except (ValueError, RecursionError) as error:
        raise InputError(f"{path}, line {number}: not tuning records: {_problem(error)}") from None
    if section is not None:
        yield section


def write_lines(path: Path, records: Iterable[Records]) -> None:
    """Write records into one file, whole or not at all."""
    with replacing(path) as partial, partial.open("w", encoding="utf-8") as out:
        for section in records:
            out.writelines(map(to_line, section.entries()))


def _whole_lines(path: Path) -> Iterator[bytes]:
    """Yield the complete lines of a file, within the limits for files and lines."""
    if path.stat().st_size > MOST_BYTES:
        raise ValueError(f"over {MOST_BYTES:,} bytes")
    with path.open("rb") as lines:
        while line := lines.readline(MOST_LINE_BYTES):
            if not line.endswith(b"\n"):
                if len(line) == MOST_LINE_BYTES:
                    raise ValueError(f"a line of over {MOST_LINE_BYTES:,} bytes")
                return
            yield line


def _problem(error: Exception) -> str:
    """Return the problem in one line."""
    if isinstance(error, pydantic.ValidationError):
        problem = error.errors()[0]
        return f"{'.'.join(map(str, problem['loc']))}: {problem['msg']}"
    return str(error).partition("\n")[0] or type(error).__name__
