"""Tuning records: everything that was tried, one file a workload, shared by all studies.

A file is JSON lines: a header that says what the records are about, then rounds
of candidates as they were proposed, a line a trial, and the choices that were
made among the first so many trials.  Nothing is ever edited, so a choice among
the first 32 stays what it is when another study tries 256.
"""

from __future__ import annotations

import json
import os
import statistics
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Annotated, Any, Literal

import pydantic

from dlas.errors import InputError
from dlas.store import fingerprint
from dlas.store.journal import Held, Journal

FORMAT = 1
"""Part of every key: raised when what a record means changes."""
MOST_BYTES = 2**30
MOST_LINE_BYTES = 2**24
"""A file or a line larger than this was not written here."""
SUFFIX = ".jsonl"
WAIT_SECONDS = 0.5
"""How often to look whether another writer has finished."""

Seconds = Annotated[float, pydantic.Field(gt=0, allow_inf_nan=False)]
Count = Annotated[int, pydantic.Field(ge=0)]
Failure = Literal["build", "run", "wrong", "crash", "hang"]


@dataclass(frozen=True)
class Header:
    """What a file of records is about.

    Parameters
    ----------
    identity : mapping
        All that has to be the same for a record to hold; its hash is the file's name.
    about : mapping
        What a person wants to know of it, e.g. the convolution.
    """

    identity: dict[str, Any]
    about: dict[str, Any]

    @property
    def key(self) -> str:
        """32 hexadecimal digits."""
        return fingerprint.key(format=FORMAT, **self.identity)


@dataclass(frozen=True)
class Round:
    """Candidates that were proposed together, numbered on from the round before; none: there are no more.

    A candidate is ``{"decisions": {...}}``, a point of an algorithm's own space, or ``{"trace": [...]}``.
    """

    candidates: list[dict[str, Any]]


@dataclass(frozen=True)
class Trial:
    """What became of one candidate.

    Parameters
    ----------
    number : int
    seconds : float
        Wall time that it added to the search.
    run_s : list of float
        Samples, seconds a call; empty where it failed.
    trace : list, optional
        The schedule as MetaSchedule writes it, where the candidate is no trace itself.
    failed : str, optional
        What failed; ``words`` are those of whoever noticed.
    """

    number: Count
    seconds: Annotated[float, pydantic.Field(ge=0, allow_inf_nan=False)]
    run_s: list[Seconds] = field(default_factory=list)
    trace: list[Any] | None = None
    failed: Failure | None = None
    words: str | None = None

    @property
    def valid(self) -> bool:
        """Whether it was right, and timed."""
        return self.failed is None and bool(self.run_s)

    @property
    def median_s(self) -> float:
        """Median of the samples."""
        return statistics.median(self.run_s)


@dataclass(frozen=True)
class Baseline:
    """Samples of the minimal schedule, seconds a call."""

    run_s: list[Seconds]


@dataclass(frozen=True)
class Choice:
    """The trial chosen among the first ``trials``, after the best of them were measured again.

    Parameters
    ----------
    trials : int
    method : mapping
        How the best were measured again.
    number : int
        The chosen trial.
    finalists : mapping of str to list of float
        Samples, seconds a call, by the trial's number.
    seconds : float
        What it took.
    """

    trials: Count
    method: dict[str, Any]
    number: Count
    finalists: dict[str, list[Seconds]]
    seconds: float


Entry = Round | Trial | Baseline | Choice
KINDS: dict[str, Any] = {
    kind.__name__.lower(): pydantic.TypeAdapter(kind) for kind in (Header, Round, Trial, Baseline, Choice)
}


@dataclass
class Records:
    """One file's content.

    Parameters
    ----------
    header : Header
    candidates : list
        Of all rounds, by number.
    rounds : list of int
        How many candidates each round had.
    trials : dict
        By number; those of a search that was killed may have gaps.
    baseline : Baseline or None
    choices : list of Choice
    """

    header: Header
    candidates: list[dict[str, Any]] = field(default_factory=list)
    rounds: list[int] = field(default_factory=list)
    trials: dict[int, Trial] = field(default_factory=dict)
    baseline: Baseline | None = None
    choices: list[Choice] = field(default_factory=list)

    def add(self, entry: Entry) -> None:
        """Take in one more line.

        Raises
        ------
        ValueError
            If it does not follow from what is there.
        """
        if isinstance(entry, Round):
            self.candidates += entry.candidates
            self.rounds.append(len(entry.candidates))
        elif isinstance(entry, Trial):
            if entry.number >= len(self.candidates) or entry.number in self.trials:
                raise ValueError(f"trial {entry.number} was not proposed, or is there already")
            self.trials[entry.number] = entry
        elif isinstance(entry, Baseline):
            self.baseline = entry
        else:
            if entry.number not in self.trials or not self.trials[entry.number].valid:
                raise ValueError(f"choice of trial {entry.number}, which was not timed")
            self.choices.append(entry)

    @property
    def exhausted(self) -> bool:
        """Whether the search has said that there are no more candidates."""
        return bool(self.rounds) and self.rounds[-1] == 0

    @property
    def valid(self) -> list[Trial]:
        """Trials that were right, by number."""
        return [trial for _, trial in sorted(self.trials.items()) if trial.valid]

    def trace(self, number: int) -> list[Any]:
        """Return a timed trial's schedule as MetaSchedule writes it."""
        trace = self.trials[number].trace or self.candidates[number].get("trace")
        assert isinstance(trace, list)
        return trace

    def lines(self) -> Iterator[str]:
        """Yield the lines that hold all this."""
        yield _line(self.header)
        start = 0
        for count in self.rounds:
            yield _line(Round(self.candidates[start : start + count]))
            start += count
        entries: list[Entry] = [*self.trials.values(), *self.choices]
        if self.baseline:
            entries.insert(0, self.baseline)
        yield from map(_line, entries)


class RecordFile:
    """A file of records and its one writer.

    Parameters
    ----------
    path : Path
    header : Header
        Written where the file is new.

    Raises
    ------
    Held
        If another process is writing to it.
    InputError
        If what is there is damaged, or about something else.
    """

    def __init__(self, path: Path, header: Header) -> None:
        self._journal = Journal(path)
        try:
            self.records = self._read(path, header)
        except BaseException:
            self._journal.close()
            raise

    def _read(self, path: Path, header: Header) -> Records:
        there = list(read_sections(path))
        if not there:
            self._journal.append(_line(header))
            return Records(header)
        if len(there) > 1 or there[0].header.key != header.key:
            raise InputError(f"{path}: not the records of {header.key}")
        return there[0]

    def add(self, entry: Entry) -> None:
        """Take in one more line, and write it."""
        self.records.add(entry)
        self._journal.append(_line(entry))

    def __enter__(self) -> RecordFile:
        return self

    def __exit__(self, *_: object) -> None:
        self._journal.close()


class Store:
    """All records of a cache.

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
        """Return the records of ``header`` for writing, once nobody else writes to them."""
        path = self.path(header.key)
        self.root.mkdir(parents=True, exist_ok=True)
        told = False
        while True:
            try:
                return RecordFile(path, header)
            except Held:
                if not told:
                    say(f"waiting for another process that writes to {path}")
                told = True
                time.sleep(WAIT_SECONDS)

    def paths(self) -> list[Path]:
        """Return every file."""
        return sorted(self.root.glob("*" + SUFFIX))


def read_sections(path: Path) -> Iterator[Records]:
    """Yield what a file of records, or an export of several, holds; a torn last line is passed over.

    Raises
    ------
    InputError
        If it cannot be read or a line is not what a record is; names file and line.
    """
    section: Records | None = None
    number = 0
    try:
        for number, line in enumerate(_bounded(path), start=1):  # noqa: B007 - the handlers quote it
            entry = _parsed(line)
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
        raise InputError(f"{path}, line {number}: not tuning records: {_first(error)}") from None
    if section is not None:
        yield section


def write_lines(path: Path, records: Iterable[Records]) -> None:
    """Write records into one file, whole or not at all."""
    aside = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        with aside.open("w", encoding="utf-8") as out:
            for each in records:
                out.writelines(each.lines())
        aside.replace(path)
    finally:
        aside.unlink(missing_ok=True)


def _line(entry: Header | Entry) -> str:
    known = {name: value for name, value in asdict(entry).items() if value is not None}
    return json.dumps({type(entry).__name__.lower(): known}, separators=(",", ":"), allow_nan=False) + "\n"


def _parsed(line: bytes) -> Header | Entry:
    raw = json.loads(line)
    if not isinstance(raw, Mapping) or len(raw) != 1:
        raise ValueError("not an object with one key")
    ((kind, content),) = raw.items()
    if kind not in KINDS:
        raise ValueError(f"unknown kind {kind!r} (there are: {', '.join(KINDS)})")
    entry: Header | Entry = KINDS[kind].validate_python(content)
    return entry


def _bounded(path: Path) -> Iterator[bytes]:
    """Yield whole lines of a file of reasonable size."""
    if path.stat().st_size > MOST_BYTES:
        raise ValueError(f"over {MOST_BYTES:,} bytes")
    with path.open("rb") as lines:
        while line := lines.readline(MOST_LINE_BYTES):
            if not line.endswith(b"\n"):
                if len(line) == MOST_LINE_BYTES:
                    raise ValueError(f"a line of over {MOST_LINE_BYTES:,} bytes")
                return
            yield line


def _first(error: Exception) -> str:
    """Return the problem in one line."""
    if isinstance(error, pydantic.ValidationError):
        found = error.errors()[0]
        return f"{'.'.join(map(str, found['loc']))}: {found['msg']}"
    return str(error).partition("\n")[0] or type(error).__name__
