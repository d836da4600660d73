"""Tuning records: all trials of searches for one workload.

Records consist of a header with the workload's identity, rounds of proposed
candidates, trials, and selections among the first trials.  Entries are never
edited, so a selection among the first 32 trials stays valid when another study
tries 256.
"""

from __future__ import annotations

import json
import statistics
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field
from typing import Annotated, Any, Literal

import pydantic

from dlas.bench.store import fingerprint, finite

FORMAT = 1
"""Version of the format, part of every key: raised when the meaning of records changes."""

Seconds = Annotated[float, pydantic.Field(gt=0, allow_inf_nan=False)]
Count = Annotated[int, pydantic.Field(ge=0)]
Failure = Literal["build", "run", "wrong", "crash", "hang"]


@dataclass(frozen=True)
class Header:
    """The identity of records."""

    identity: dict[str, Any]
    """All that records depend on; its hash is the file's name."""
    about: dict[str, Any]
    """For people, e.g. the convolution."""

    @property
    def key(self) -> str:
        """32 hexadecimal digits."""
        return fingerprint.key(**{**self.identity, "format": FORMAT})


@dataclass(frozen=True)
class Round:
    """Candidates that were proposed together; empty if the search space is exhausted.

    Their numbers continue those of the round before.

    A candidate is ``{"decisions": {...}}``, a point of an algorithm's own space, or ``{"trace": [...]}``.
    """

    candidates: list[dict[str, Any]]


@dataclass(frozen=True)
class Trial:
    """How one candidate was built and timed."""

    number: Count
    seconds: Annotated[float, pydantic.Field(ge=0, allow_inf_nan=False)]
    """Wall time of the search that it took."""
    run_s: list[Seconds] = field(default_factory=list)
    """Samples, seconds a call; empty if it failed."""
    trace: list[Any] | None = None
    """The schedule in MetaSchedule's format, if the candidate is a set of decisions."""
    failed: Failure | None = None
    """The kind of failure; ``words`` is its message."""
    words: str | None = None

    @property
    def valid(self) -> bool:
        """Whether its output was correct and it was timed."""
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
class Selection:
    """The trial selected among the first ``trials``, after measuring the best of them again."""

    trials: Count
    method: dict[str, Any]
    """How the finalists were measured."""
    number: Count
    """The selected trial."""
    finalists: dict[str, list[Seconds]]
    """Samples, seconds a call, by the trial's number."""
    seconds: float
    """Duration of the selection."""


Entry = Round | Trial | Baseline | Selection
KINDS: dict[str, type[Header | Entry]] = {
    "header": Header,
    "round": Round,
    "trial": Trial,
    "baseline": Baseline,
    "choice": Selection,
}
"""Class of an entry by its key in a line of a file."""
VALIDATORS: dict[str, pydantic.TypeAdapter[Any]] = {
    kind: pydantic.TypeAdapter(cls) for kind, cls in KINDS.items()
}


@dataclass
class Records:
    """All records of one workload."""

    header: Header
    candidates: list[dict[str, Any]] = field(default_factory=list)
    """Candidates of all rounds, by number."""
    rounds: list[int] = field(default_factory=list)
    """Number of candidates in each round."""
    trials: dict[int, Trial] = field(default_factory=dict)
    """Trials by number; a search that was killed may leave gaps."""
    baseline: Baseline | None = None
    selections: list[Selection] = field(default_factory=list)

    def add(self, entry: Entry) -> None:
        """Add an entry.

        Raises
        ------
        ValueError
            If it contradicts earlier entries.
        """
        if isinstance(entry, Round):
            self.candidates += entry.candidates
            self.rounds.append(len(entry.candidates))
        elif isinstance(entry, Trial):
            if entry.number >= len(self.candidates) or entry.number in self.trials:
                raise ValueError(f"trial {entry.number} was not proposed, or is there already")
            if entry.valid and not isinstance(self._trace(entry), list):
                raise ValueError(f"trial {entry.number} was timed and has no schedule")
            self.trials[entry.number] = entry
        elif isinstance(entry, Baseline):
            self.baseline = entry
        else:
            if entry.number not in self.trials or not self.trials[entry.number].valid:
                raise ValueError(f"choice of trial {entry.number}, which was not timed")
            self.selections.append(entry)

    @property
    def exhausted(self) -> bool:
        """Whether all candidates of the search space were proposed."""
        return bool(self.rounds) and self.rounds[-1] == 0

    @property
    def valid(self) -> list[Trial]:
        """Valid trials, by number."""
        return [trial for _, trial in sorted(self.trials.items()) if trial.valid]

    def trace(self, number: int) -> list[Any]:
        """Return a timed trial's schedule in MetaSchedule's format."""
        trace: list[Any] = self._trace(self.trials[number])
        return trace

    def _trace(self, trial: Trial) -> Any:
        return trial.trace or self.candidates[trial.number].get("trace")

    def entries(self) -> Iterator[Header | Entry]:
        """Yield all entries, in an order that :meth:`add` accepts."""
        yield self.header
        start = 0
        for count in self.rounds:
            yield Round(self.candidates[start : start + count])
            start += count
        if self.baseline:
            yield self.baseline
        yield from self.trials.values()
        yield from self.selections


def to_line(entry: Header | Entry) -> str:
    """Return the line of JSON that holds an entry."""
    (kind,) = (kind for kind, cls in KINDS.items() if cls is type(entry))
    fields = {name: value for name, value in asdict(entry).items() if value is not None}
    return json.dumps({kind: fields}, separators=(",", ":"), allow_nan=False) + "\n"


def from_line(line: bytes) -> Header | Entry:
    """Return the entry that a line of JSON holds.

    Raises
    ------
    ValueError
        If it is not an entry.
    """
    raw = finite.loads(line)
    if not isinstance(raw, Mapping) or len(raw) != 1:
        raise ValueError("not an object with one key")
    ((kind, content),) = raw.items()
    if kind not in KINDS:
        raise ValueError(f"unknown kind {kind!r} (there are: {', '.join(KINDS)})")
    entry: Header | Entry = VALIDATORS[kind].validate_python(content)
    return entry
