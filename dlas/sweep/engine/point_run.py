"""The state of a point in a sweep, and the summary of a sweep."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from dlas.stack import Hardware
from dlas.sweep.engine.durations import Durations
from dlas.sweep.engine.planning import Plan, Step
from dlas.sweep.study.point import Point


@dataclass(eq=False)
class PointRun:
    """The state of a point in a sweep.

    Parameters
    ----------
    point : Point
    plan : Plan
    log : Path
        The output of its steps.
    done : int
        Number of finished steps before measuring.
    job : int or None
        The job that works on it now.
    ended : int
        Number of steps of that job that have ended.
    facts : dict
        Results of check and measure so far, by the row's column.
    started : str
        When its latest job began, as rows write it; empty before the first.
    took : Durations
    remakes : int
        How often damaged artifacts were made again.
    first_round : dict or None
        The facts of its measurement, where that was unstable and is repeated.
    unreachable : bool
        Whether its device could not be reached once, so that its step is repeated.
    """

    point: Point
    plan: Plan
    log: Path
    done: int = 0
    job: int | None = None
    ended: int = 0
    facts: dict[str, Any] = field(default_factory=dict)
    started: str = ""
    took: Durations = field(default_factory=Durations)
    remakes: int = 0
    first_round: dict[str, Any] | None = None
    unreachable: bool = False

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
    def under_way(self) -> Step:
        """The step that its job works on now."""
        return self.to_do[min(self.ended, len(self.to_do) - 1)]

    @property
    def comparison(self) -> tuple[object, ...]:
        """Points with equal values will be compared, so they are measured in turns."""
        point = self.point
        return point.dataset, point.model, point.hardware, point.batch, point.task

    @property
    def device(self) -> Hardware:
        """The device that it is tuned for and measured on."""
        device: Hardware = self.point.hardware.make("hardware")
        return device


@dataclass
class Summary:
    """Rows that a sweep wrote, by status; current rows that it kept; measurements that it started."""

    written: Counter[str] = field(default_factory=Counter)
    kept: int = 0
    measured: int = 0
