"""A point on its way to its row, and what a sweep has done so far."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from dlas.engine.planning import Plan, Step
from dlas.stack import Hardware
from dlas.study.point import Point


@dataclass(eq=False)
class PointRun:
    """A point on its way to a row.

    Parameters
    ----------
    point : Point
    plan : Plan
    started : str
        When, as rows write it.
    log : Path
        Gets what its steps print.
    done : int
        Steps before measuring that are behind it.
    job : int or None
        What works on it now.
    facts : dict
        What check and measure returned so far, by the row's column.
    seconds : dict
        Seconds each step took.
    remakes : int
        How often its artifacts were made again because they were damaged.
    """

    point: Point
    plan: Plan
    started: str
    log: Path
    done: int = 0
    job: int | None = None
    facts: dict[str, Any] = field(default_factory=dict)
    seconds: dict[str, float] = field(default_factory=dict)
    remakes: int = 0

    def add_seconds(self, step: str, seconds: float) -> None:
        """Add to the time that a step took, which may have run more than once."""
        self.seconds[step] = self.seconds.get(step, 0.0) + seconds

    def restart(self) -> None:
        """Go back to the first step; artifacts that are whole are found again."""
        self.remakes += 1
        self.done = 0
        self.job = None

    @property
    def ready(self) -> bool:
        """Whether only measuring is left."""
        return self.done == len(self.plan.steps)

    @property
    def step(self) -> Step:
        """What it does, or does next."""
        return self.plan.measure if self.ready else self.plan.steps[self.done]

    @property
    def comparison(self) -> tuple[object, ...]:
        """Points that agree in this will be compared, so they are measured in turns."""
        return self.point.dataset, self.point.model, self.point.hardware, self.point.batch

    @property
    def device(self) -> Hardware:
        """Where it is measured."""
        device: Hardware = self.point.hardware.make("hardware")
        return device


@dataclass
class Summary:
    """What a run of a sweep did: rows written by status, and rows that were there already."""

    written: Counter[str] = field(default_factory=Counter)
    kept: int = 0
    measured: int = 0
