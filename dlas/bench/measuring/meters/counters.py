"""Counters of energy, which miss nothing between two readings."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Protocol

from dlas.bench.measuring.meters.meter import SteppedMeter


class EnergyCounter(Protocol):
    """A counter that a sensor keeps, and that begins again from 0 where it is full."""

    @property
    def label(self) -> str:
        """What it counts."""

    @property
    def full_j(self) -> float:
        """Its largest value in joules."""

    def joules(self) -> float | None:
        """Return its value now, None where it cannot be read."""


class EnergyCounters(SteppedMeter):
    """Counters that add up to a whole.

    A reading that is missing loses nothing: the next one has what was used meanwhile.

    Parameters
    ----------
    sensor : str
    counters : sequence of EnergyCounter
    period_s : float
    clock : callable, optional
    """

    def __init__(
        self,
        sensor: str,
        counters: Sequence[EnergyCounter],
        period_s: float,
        clock: Callable[[], float] = time.perf_counter,
    ) -> None:
        super().__init__(sensor, [counter.label for counter in counters], period_s, clock)
        self._counters = counters

    def values(self) -> list[float | None]:
        """Return the joules that each counter says."""
        return [counter.joules() for counter in self._counters]

    def used_j(self, seconds: float, before: Sequence[float], now: Sequence[float]) -> tuple[float, ...]:
        """Return the joules of each counter; one that is smaller now has begun again."""
        return tuple(
            new - old if new >= old else new - old + counter.full_j
            for counter, old, new in zip(self._counters, before, now, strict=True)
        )
