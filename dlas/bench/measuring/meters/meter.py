"""The interface of meters of energy."""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class EnergyReading:
    """What a meter counted since the reading before that could be taken."""

    seconds: float
    """The time since then; 0 for a reading that is missing, whose time is in the next one."""
    joules: float | None
    """None for a reading that could not be taken."""
    rails_j: tuple[float, ...] = ()
    """The joules of each of the meter's rails; empty for a reading that is missing."""


MISSING = EnergyReading(0.0, None)


class Meter(ABC):
    """Counts energy from one call to the next."""

    sensor: str
    """What is read, as rows name it."""
    rails: tuple[str, ...] = ()
    """The names of rails that are told beside the whole; they need not add up to it."""
    period_s: float
    """How often the sensor has a new value that is worth reading, in seconds."""

    @abstractmethod
    def start(self) -> None:
        """Begin to count."""

    @abstractmethod
    def read(self) -> EnergyReading:
        """Return what was used since the last reading that could be taken."""


class SteppedMeter(Meter):
    """Compares what its sensors say now with what they said at the last reading that could be taken.

    Parameters
    ----------
    sensor : str
    labels : sequence of str
        What each of the sensors is of.
    period_s : float
    clock : callable, optional
    """

    def __init__(
        self,
        sensor: str,
        labels: Sequence[str],
        period_s: float,
        clock: Callable[[], float] = time.perf_counter,
    ) -> None:
        self.sensor, self.period_s = sensor, period_s
        self.rails = tuple(labels) if len(labels) > 1 else ()
        self._clock = clock
        self._last: tuple[float, list[float]] | None = None

    @abstractmethod
    def values(self) -> list[float | None]:
        """Return what each sensor says now, None where it cannot be read."""

    @abstractmethod
    def used_j(self, seconds: float, before: Sequence[float], now: Sequence[float]) -> tuple[float, ...]:
        """Return the joules of each sensor between two readings."""

    def whole_j(self, used: Sequence[float]) -> float:
        """Return the joules of the whole, by default the sum."""
        return sum(used)

    def start(self) -> None:
        """Read the sensors."""
        self._last = self._now()

    def read(self) -> EnergyReading:
        """Return what was used since the last reading that could be taken."""
        before, now = self._last, self._now()
        self._last = now or before
        if before is None or now is None:
            return MISSING
        seconds = now[0] - before[0]
        used = self.used_j(seconds, before[1], now[1])
        return EnergyReading(seconds, self.whole_j(used), used if self.rails else ())

    def _now(self) -> tuple[float, list[float]] | None:
        """Return the time and all values, None where one cannot be read."""
        now, values = self._clock(), self.values()
        known = [each for each in values if each is not None]
        return (now, known) if len(known) == len(values) else None
