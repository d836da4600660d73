"""Sensors that tell the power now, which is added up over time."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Protocol

from dlas.bench.measuring.meters.meter import SteppedMeter


class PowerSensor(Protocol):
    """What tells the power of one rail."""

    @property
    def label(self) -> str:
        """The rail's name."""

    def watts(self) -> float | None:
        """Return the power now, None where it cannot be read."""


class PowerMeter(SteppedMeter):
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
        super().__init__(sensor, [rail.label for rail in rails], period_s, clock)
        self._rails, self.counted = rails, tuple(counted)

    def values(self) -> list[float | None]:
        """Return the watts of each rail."""
        return [rail.watts() for rail in self._rails]

    def used_j(self, seconds: float, before: Sequence[float], now: Sequence[float]) -> tuple[float, ...]:
        """Return the joules of each rail: the mean of its power then and now, times the seconds."""
        return tuple((old + new) / 2 * seconds for old, new in zip(before, now, strict=True))

    def whole_j(self, used: Sequence[float]) -> float:
        """Return the joules of the rails that add up to the whole."""
        return sum(
            joules for rail, joules in zip(self._rails, used, strict=True) if rail.label in self.counted
        )
