"""Tuning records: everything that searches tried for one workload.

Records hold a header that says what they are about, rounds of candidates as they
were proposed, trials, and selections among the first so many trials.  Nothing is
ever edited, so a selection among the first 32 trials stays valid when another study
tries 256.
"""

from __future__ import annotations

import json
import statistics
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field
from typing import Annotated, Any, Literal

import pydantic

from dlas.store import fingerprint

FORMAT = 1
"""Part of every key: raised when what a record means changes."""

Seconds = Annotated[float, pydantic.Field(gt=0, allow_inf_nan=False)]
Count = Annotated[int, pydantic.Field(ge=0)]
Failure = Literal["build", "run", "wrong", "crash", "hang"]


@dataclass(frozen=True)
class Header:
    """What records are about.

    Parameters
    ----------
    identity : dict
        All that has to be the same for a record to hold; its hash is the file's name.
    about : dict
        For people, e.g. the convolution.
    """

    identity: dict[str, Any]
    about: dict[str, Any]

    @property
    def key(self) -> str:
        """32 hexadecimal digits."""
        return fingerprint.key(format=FORMAT, **self.identity)


@dataclass(frozen=True)
class Round:
    """Candidates that were proposed together; none where the search space is exhausted.

    Their numbers continue those of the round before.

    A candidate is ``{"decisions": {...}}``, a point of an algorithm's own space, or ``{"trace": [...]}``.
    """

    candidates: list[dict[str, Any]]


@dataclass(frozen=True)
class Trial:
    """How one candidate was built and timed.

    Parameters
    ----------
    number : int
    seconds : float
        Wall time that it added to the search.
    run_s : list of float
        Samples, seconds a call; empty where it failed.
    trace : list, optional
        The schedule as MetaSchedule writes it, where the candidate is a set of decisions.
    failed : str, optional
        What failed; ``words`` say how.
    """

    number: Count
    seconds: Annotated[float, pydantic.Field(ge=0, allow_inf_nan=False)]
    run_s: list[Seconds] = field(default_factory=list)
    trace: list[Any] | None = None
    failed: Failure | None = None
    words: str | None = None

    @property
    def valid(self) -> bool:
        """Whether its output was right, and it was timed."""
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
    """The trial selected among the first ``trials``, after the best of them were measured again.

    Parameters
    ----------
    trials : int
    method : mapping
        How the best were measured again.
    number : int
        The selected trial.
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


Entry = Round | Trial | Baseline | Selection
KINDS: dict[str, type[Header | Entry]] = {
    "header": Header,
    "round": Round,
    "trial": Trial,
    "baseline": Baseline,
    "choice": Selection,
}
"""What a line of a file holds, by the word that it begins with."""
VALIDATORS: dict[str, pydantic.TypeAdapter[Any]] = {
    kind: pydantic.TypeAdapter(cls) for kind, cls in KINDS.items()
}


@dataclass
class Records:
    """All that is on record of one workload.

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
    selections : list of Selection
    """

    header: Header
    candidates: list[dict[str, Any]] = field(default_factory=list)
    rounds: list[int] = field(default_factory=list)
    trials: dict[int, Trial] = field(default_factory=dict)
    baseline: Baseline | None = None
    selections: list[Selection] = field(default_factory=list)

    def add(self, entry: Entry) -> None:
        """Add an entry.

        Raises
        ------
        ValueError
            If it contradicts what is there.
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
            self.selections.append(entry)

    @property
    def exhausted(self) -> bool:
        """Whether every candidate of the search space was proposed."""
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

    def entries(self) -> Iterator[Header | Entry]:
        """Yield everything, in an order in which :meth:`add` takes it."""
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
        If it holds none.
    """
    raw = json.loads(line)
    if not isinstance(raw, Mapping) or len(raw) != 1:
        raise ValueError("not an object with one key")
    ((kind, content),) = raw.items()
    if kind not in KINDS:
        raise ValueError(f"unknown kind {kind!r} (there are: {', '.join(KINDS)})")
    entry: Header | Entry = VALIDATORS[kind].validate_python(content)
    return entry
