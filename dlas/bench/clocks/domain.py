"""What a clock of a device can be set to, what that changes, and what it runs at."""

from __future__ import annotations

import bisect
import math
from abc import ABC, abstractmethod
from collections.abc import Iterable
from dataclasses import dataclass

from dlas.bench.clocks.guard import ClockSetting

SAME = 1e-6
"""The relative difference up to which two clocks are one step."""


@dataclass(frozen=True)
class ClockSteps:
    """The clocks that a device can be set to."""

    hz: tuple[float, ...]
    """Ascending."""
    between: bool = False
    """Whether those between the first and the last one count too: the kernel tells no others."""

    @classmethod
    def of(cls, hz: Iterable[float]) -> ClockSteps:
        """Return steps in the right order, each once."""
        return cls(tuple(sorted(set(hz))))

    def has(self, hz: float) -> bool:
        """Return whether a clock is one of them."""
        inside = self.between and self.hz[0] <= hz <= self.hz[-1]
        return inside or any(math.isclose(step, hz, rel_tol=SAME) for step in self.hz)

    def nearest(self, hz: float) -> tuple[float, ...]:
        """Return the steps below and above a clock; beyond the ends, the last two."""
        above = bisect.bisect(self.hz, hz)
        first = min(max(above - 1, 0), max(len(self.hz) - 2, 0))
        return self.hz[first : first + 2]

    def shared(self, other: ClockSteps) -> ClockSteps:
        """Return the steps of both."""
        if self.between and other.between:
            ends = max(self.hz[0], other.hz[0]), min(self.hz[-1], other.hz[-1])
            return ClockSteps(ends, between=True) if ends[0] <= ends[1] else ClockSteps(())
        listed, ranged = (other, self) if self.between else (self, other)
        return ClockSteps(tuple(step for step in listed.hz if ranged.has(step)))


class ClockDomain(ABC):
    """A clock of a device: that of its processors, its GPU or its memory."""

    name: str
    """``cpu``, ``gpu`` or ``memory``."""

    @abstractmethod
    def steps_hz(self) -> ClockSteps:
        """Return what it can be set to."""

    @abstractmethod
    def plan(self, hz: float) -> list[ClockSetting]:
        """Return what pinning it to a step changes, with what is set now, in the order of writing.

        Raises
        ------
        OSError
            If what is set now cannot be read.
        """

    @abstractmethod
    def applied_hz(self) -> tuple[float, ...]:
        """Return the clocks that the kernel says are set: one a controller, empty where it does not tell."""

    @abstractmethod
    def observed_hz(self) -> tuple[float, ...]:
        """Return the clocks that it runs at now: one a controller, empty where the kernel does not tell."""
