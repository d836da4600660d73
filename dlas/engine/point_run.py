"""Points on their way to rows, as a sweep keeps them."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from dlas.engine.planning import Plan, Step
from dlas.stack import Hardware
from dlas.study.point import Point


@dataclass(eq=False)
class Active:
    """A point on its way to a row."""

    point: Point
    plan: Plan
    started: str
    log: Path
    done: int = 0
    job: int | None = None
    found: dict[str, Any] = field(default_factory=dict)
    seconds: dict[str, float] = field(default_factory=dict)
    remakes: int = 0

    def took(self, step: str, seconds: float) -> None:
        """Add to the time that a step took, which may have run more than once."""
        self.seconds[step] = self.seconds.get(step, 0.0) + seconds

    @property
    def ready(self) -> bool:
        """Whether only measuring is left."""
        return self.done == len(self.plan.steps)

    @property
    def step(self) -> Step:
        """What it does, or does next."""
        return self.plan.measure if self.ready else self.plan.steps[self.done]

    @property
    def group(self) -> tuple[object, ...]:
        """Points of one group will be compared, so they are measured in turns."""
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
