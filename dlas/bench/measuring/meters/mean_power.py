"""The mean power over readings of a meter, with how many are missing and how it drifted."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

from dlas.bench.measuring.meters.meter import EnergyReading

MOST_MISSING = 0.1
"""The largest share of readings that may be missing."""


@dataclass(frozen=True)
class MeanPower:
    """What readings one after another tell of the power."""

    watts: float
    """The joules of all readings over their seconds."""
    rails_w: dict[str, float]
    """The same of each rail."""
    readings: int
    """Number of readings, those that are missing too."""
    missing: int
    """Number of those that could not be taken."""
    drift: float | None
    """By what share the last third has more power than the first; None for fewer than three readings."""

    @classmethod
    def of(cls, readings: Sequence[EnergyReading], rails: Sequence[str]) -> Self | None:
        """Return the mean power, None where no time is known, or more than a tenth of readings is missing."""
        taken = [each for each in readings if each.joules is not None]
        missing, seconds = len(readings) - len(taken), sum(each.seconds for each in taken)
        if seconds <= 0 or missing > MOST_MISSING * len(readings):
            return None
        rails_j = zip(*(each.rails_j for each in taken), strict=True)
        return cls(
            watts=_watts(taken),
            rails_w={rail: sum(joules) / seconds for rail, joules in zip(rails, rails_j, strict=True)},
            readings=len(readings),
            missing=missing,
            drift=_drift(taken),
        )


def _drift(taken: Sequence[EnergyReading]) -> float | None:
    third = len(taken) // 3
    if not third:
        return None
    first, last = _watts(taken[:third]), _watts(taken[-third:])
    return last / first - 1 if first > 0 else None


def _watts(taken: Sequence[EnergyReading]) -> float:
    """Return joules over seconds; 0 over no time."""
    seconds = sum(each.seconds for each in taken)
    return sum(each.joules or 0.0 for each in taken) / seconds if seconds > 0 else 0.0
