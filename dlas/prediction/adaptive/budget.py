"""What a loop may spend: points, minutes, or both."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from dlas.sweep.study.point import Point


@dataclass
class LoopBudget:
    """What a loop may spend, with what it spent before it was interrupted."""

    points: int | None = None
    """The most to measure in all."""
    minutes: float = math.inf
    """The most that it may take in all."""
    before_s: float = 0.0
    """Seconds that it took before."""
    now: Callable[[], float] = time.monotonic
    """Returns seconds since any moment."""
    measured: int = 0
    """Points so far."""
    _began: float = field(init=False)

    def __post_init__(self) -> None:
        self._began = self.now()

    @property
    def spent_s(self) -> float:
        """Seconds until now."""
        return self.before_s + self.now() - self._began

    @property
    def left_s(self) -> float:
        """Seconds that are left; negative where it took longer."""
        return 60 * self.minutes - self.spent_s

    def affordable(self, points: Sequence[Point]) -> Sequence[Point]:
        """Return the first of some points, as many as may still be measured."""
        if self.left_s <= 0:
            return []
        return points if self.points is None else points[: max(0, self.points - self.measured)]
