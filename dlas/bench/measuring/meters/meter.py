"""The interface of meters of energy."""

from __future__ import annotations

from abc import ABC, abstractmethod
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
