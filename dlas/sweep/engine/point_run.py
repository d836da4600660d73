"""The state of a point in a sweep: its steps, how long they took, and its rounds; the summary of a sweep."""

from __future__ import annotations

import statistics
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from dlas.bench.processes.events import TaskEnd
from dlas.sweep.engine.planning import Plan, Step
from dlas.sweep.rows.results import COMPLETED, STATUSES
from dlas.sweep.rows.schema import OtherRound

FAILED = frozenset(STATUSES) - {*COMPLETED, "unsupported"}

Round = Mapping[str, Any]
"""Facts of a measurement by the row's column, with ``started`` and perhaps ``instability``."""


@dataclass
class Durations:
    """Seconds by step; a step may run more than once, or make several artifacts."""

    worked: dict[str, float] = field(default_factory=dict)
    waited: dict[str, float] = field(default_factory=dict)
    """Time that it worked, and that it was paused or waited for its turn."""
    cached: dict[str, float] = field(default_factory=dict)
    """Time that its artifacts which were in the cache took when they were made for other points."""
    _artifacts: set[str] = field(default_factory=set)

    def add(self, step: Step, worked: float, waited: float) -> None:
        """Add a run of a step."""
        self._artifacts.add(step.key)
        _add(self.worked, step, worked)
        _add(self.waited, step, waited)

    def add_artifact(self, step: Step, notes: Mapping[str, Any], owner: str) -> None:
        """Add the artifact of a step that was in the cache, once.

        Parameters
        ----------
        notes : mapping
            What :func:`notes` returned when it was made; empty where that is unknown.
        owner : str
            The point that it is used for.  If it was made for that point too, before
            an interruption, its time counts as the point's own.
        """
        if step.key in self._artifacts or not notes:
            return
        if notes.get("owner") == owner:
            self.add(step, notes["seconds"], notes["waited"])
        else:
            self._artifacts.add(step.key)
            _add(self.cached, step, notes["seconds"])


@dataclass(eq=False)
class PointRun:
    """The state of a point in a sweep."""

    plan: Plan
    log: Path
    """The output of its steps."""
    done: int = 0
    """Number of finished steps before measuring."""
    job: int | None = None
    """The job that works on it now."""
    ended: int = 0
    """Number of steps of that job that have ended."""
    facts: dict[str, Any] = field(default_factory=dict)
    """Results of check and measure so far, by the row's column."""
    started: str = ""
    """When its latest job began, as rows write it; empty before the first."""
    took: Durations = field(default_factory=Durations)
    remakes: int = 0
    """How often damaged artifacts were made again."""
    first_round: dict[str, Any] | None = None
    """The facts of its measurement, where that was unstable and is repeated."""
    rounds: int = 0
    """How often its measurement was started."""
    earlier_slices: int = 0
    """Slices that earlier starts of its measurement took."""
    unreachable: bool = False
    """Whether its device could not be reached once, so that its step is repeated."""

    def restart(self) -> None:
        """Go back to the first step; undamaged artifacts are reused."""
        self.remakes += 1
        self.done = self.ended = 0
        self.job = None

    @property
    def ready(self) -> bool:
        """Whether only measuring is left."""
        return self.done == len(self.plan.steps)

    @property
    def step(self) -> Step:
        """The current or next step."""
        return self.plan.measure if self.ready else self.plan.steps[self.done]

    @property
    def to_do(self) -> tuple[Step, ...]:
        """The current step and those after it, measuring last."""
        return (*self.plan.steps, self.plan.measure)[self.done :]

    @property
    def id(self) -> str:
        """The point's id."""
        return self.plan.id

    @property
    def content(self) -> Mapping[str, Any]:
        """What the point chooses on each axis."""
        return self.plan.content

    @property
    def step_name(self) -> str:
        """The step that its job works on now, or that comes next."""
        return self.to_do[min(self.ended, len(self.to_do) - 1)].name

    @property
    def steps_done(self) -> int:
        """Number of steps that have ended."""
        return self.done + self.ended

    @property
    def steps(self) -> int:
        """Number of all its steps, measuring included."""
        return len(self.plan.steps) + 1

    @property
    def running(self) -> bool:
        """Whether a job works on it."""
        return self.job is not None

    @property
    def node(self) -> str:
        """Empty: it is on this machine."""
        return ""


@dataclass
class Summary:
    """What a sweep did."""

    written: Counter[str] = field(default_factory=Counter)
    """Rows by status."""
    kept: Counter[str] = field(default_factory=Counter)
    """Current rows of before, by status."""
    measured: int = 0
    """Points whose measurement was started."""
    again: int = 0
    """Those of them that were measured more than once."""

    @property
    def all_failed(self) -> bool:
        """Whether points failed, and none has been completed."""
        statuses = {*self.written, *self.kept}
        return not statuses.isdisjoint(FAILED) and statuses.isdisjoint(COMPLETED)


def notes(end: TaskEnd, owner: str) -> dict[str, Any]:
    """Return what to note of the artifact of a step that has ended.

    Parameters
    ----------
    owner : str
        The point that it was made for, with its results folder.
    """
    return {"seconds": end.seconds, "waited": end.waited, "owner": owner}


def _add(seconds: dict[str, float], step: Step, more: float) -> None:
    seconds[step.name] = seconds.get(step.name, 0.0) + more


def steadier(first: Round, second: Round) -> dict[str, Any]:
    """Return the facts of the steadier of two rounds, with ``other_round`` for the other.

    Of two stable rounds, or of a device that does not tell how far slices are apart, it is the second.
    """
    first_apart, second_apart = (each.get("instability") or 0.0 for each in (first, second))
    keeps_first = bool(second.get("unstable")) and first_apart <= second_apart
    kept, other = (first, second) if keeps_first else (second, first)
    return {**kept, "other_round": _summary(other)}


def without_second(first: Round, started: str, reason: str | None) -> dict[str, Any]:
    """Return the facts of the first round after a second one failed."""
    other: OtherRound = {"started": started, "latency_s": None, "samples": 0, "reason": reason}
    return {**first, "other_round": other}


def _summary(facts: Round) -> OtherRound:
    samples = facts.get("latency_s") or []
    return {
        "started": facts["started"],
        "latency_s": statistics.median(samples) if samples else None,
        "samples": len(samples),
        "reason": facts.get("unstable_reason"),
    }
