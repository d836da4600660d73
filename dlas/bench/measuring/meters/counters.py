"""Counters of energy, which miss nothing between two readings."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Protocol

from dlas.bench.measuring.meters.meter import MISSING, EnergyReading, Meter


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


class EnergyCounters(Meter):
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
        self.sensor, self.period_s = sensor, period_s
        self.rails = tuple(counter.label for counter in counters) if len(counters) > 1 else ()
        self._counters, self._clock = counters, clock
        self._last: tuple[float, list[float]] | None = None

    def start(self) -> None:
        """Read the counters."""
        self._last = self._now()

    def read(self) -> EnergyReading:
        """Return the joules of all counters; one that is smaller now has begun again."""
        before, now = self._last, self._now()
        self._last = now or before
        if before is None or now is None:
            return MISSING
        used = tuple(
            new - old if new >= old else new - old + counter.full_j
            for counter, old, new in zip(self._counters, before[1], now[1], strict=True)
        )
        return EnergyReading(now[0] - before[0], sum(used), used if self.rails else ())

    def _now(self) -> tuple[float, list[float]] | None:
        """Return the time and all counters, None where one cannot be read."""
        now = self._clock()
        joules = [counter.joules() for counter in self._counters]
        known = [each for each in joules if each is not None]
        return (now, known) if len(known) == len(joules) else None
