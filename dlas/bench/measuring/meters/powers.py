"""Sensors that tell the power now, which is added up over time."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Protocol

from dlas.bench.measuring.meters.meter import MISSING, EnergyReading, Meter


class PowerSensor(Protocol):
    """What tells the power of one rail."""

    @property
    def label(self) -> str:
        """The rail's name."""

    def watts(self) -> float | None:
        """Return the power now, None where it cannot be read."""


class PowerMeter(Meter):
    """Rails whose power is added up over time.

    Over a reading that is missing the power is taken for a straight line from the one before to the next.

    Parameters
    ----------
    sensor : str
    rails : sequence of PowerSensor
        All that are told.
    counted : sequence of str
        The labels of those that add up to the whole.
    period_s : float
    clock : callable, optional
    """

    def __init__(
        self,
        sensor: str,
        rails: Sequence[PowerSensor],
        counted: Sequence[str],
        period_s: float,
        clock: Callable[[], float] = time.perf_counter,
    ) -> None:
        self.sensor, self.period_s, self.counted = sensor, period_s, tuple(counted)
        self.rails = tuple(rail.label for rail in rails) if len(rails) > 1 else ()
        self._rails, self._clock = rails, clock
        self._last: tuple[float, list[float]] | None = None

    def start(self) -> None:
        """Read the power."""
        self._last = self._now()

    def read(self) -> EnergyReading:
        """Return the joules: the mean of the power then and now, times the seconds."""
        before, now = self._last, self._now()
        self._last = now or before
        if before is None or now is None:
            return MISSING
        seconds = now[0] - before[0]
        used = tuple((old + new) / 2 * seconds for old, new in zip(before[1], now[1], strict=True))
        whole = sum(
            joules for rail, joules in zip(self._rails, used, strict=True) if rail.label in self.counted
        )
        return EnergyReading(seconds, whole, used if self.rails else ())

    def _now(self) -> tuple[float, list[float]] | None:
        """Return the time and the power of all rails, None where one cannot be read."""
        now = self._clock()
        watts = [rail.watts() for rail in self._rails]
        known = [each for each in watts if each is not None]
        return (now, known) if len(known) == len(watts) else None
