"""Energy and power: what the machine's own meter counts while the program runs."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import astuple, dataclass
from typing import Any, Self

from dlas.bench.measuring.machine import Machine
from dlas.bench.measuring.meters import find_meter
from dlas.bench.measuring.meters.mean_power import MeanPower
from dlas.bench.measuring.meters.meter import EnergyReading, Meter
from dlas.bench.measuring.observers.observer import Observer, Slice

NAME = "energy"
SHARE = 0.9
"""The least share of the watched time that samples must take: in the rest the program stands still, or
runs untimed.  Above it, energy is too low by a tenth at most."""


@dataclass(frozen=True)
class EnergyWatched:
    """What a meter told from right before a slice's samples until right after them."""

    sensor: str
    period_s: float
    rails: tuple[str, ...]
    readings: tuple[EnergyReading, ...]
    watched_s: float

    @classmethod
    def of(cls, content: Mapping[str, Any]) -> Self:
        """Return it from what :meth:`Energy.after` told."""
        readings = tuple(EnergyReading(each[0], each[1], tuple(each[2])) for each in content["readings"])
        return cls(**{**content, "rails": tuple(content["rails"]), "readings": readings})


class Energy(Observer):
    """Reads a meter at its sensor's period, from right before the samples until right after them.

    Parameters
    ----------
    meter : Meter
    clock : callable, optional
    """

    def __init__(self, meter: Meter, clock: Callable[[], float] = time.perf_counter) -> None:
        self.every_s = meter.period_s
        self._meter, self._clock = meter, clock
        self._readings: list[EnergyReading] = []
        self._begun_s = 0.0

    @classmethod
    def here(cls, machine: Machine, on_gpu: bool) -> Self | None:
        """Return an observer with the machine's meter, None where it has none that may be read."""
        meter = find_meter(machine.root, on_gpu)
        return None if meter is None else cls(meter)

    def before(self) -> None:
        """Begin to count."""
        self._readings = []
        self._begun_s = self._clock()
        self._meter.start()

    def during(self) -> None:
        """Count what has been used since the last time."""
        self._readings.append(self._meter.read())

    def after(self) -> dict[str, Any]:
        """Return an :class:`EnergyWatched` as a mapping."""
        self.during()
        return {
            "sensor": self._meter.sensor,
            "period_s": self._meter.period_s,
            "rails": list(self._meter.rails),
            "readings": [list(astuple(reading)) for reading in self._readings],
            "watched_s": self._clock() - self._begun_s,
        }

    @classmethod
    def fields(cls, slices: Sequence[Slice]) -> dict[str, Any]:
        """Return what :func:`power_fields` does of all readings; null where samples took too little time."""
        watched = [EnergyWatched.of(piece.seen[NAME]) for piece in slices if NAME in piece.seen]
        if not watched or len(watched) < len(slices):
            return power_fields(None, slices)
        sampled_s = sum(sum(piece.samples) * piece.calls for piece in slices)
        share = sampled_s / max(sum(each.watched_s for each in watched), 1e-9)
        if share < SHARE:
            note = f"samples took {share:.0%} of the time: longer ones (sample_seconds) take more of it"
            return power_fields(None, slices, watched[0].sensor, note)
        readings = [reading for each in watched for reading in each.readings]
        mean = MeanPower.of(readings, watched[0].rails)
        return power_fields(mean, slices, watched[0].sensor, None if mean else missing_note(readings))


def power_fields(
    mean: MeanPower | None, slices: Sequence[Slice], sensor: str | None = None, note: str | None = None
) -> dict[str, Any]:
    """Return the fields of a row about power, and ``energy_j``: the power times the mean time of a call.

    Parameters
    ----------
    mean : MeanPower, optional
        None where it is not known.
    slices : sequence of Slice
        Those whose samples tell the time of a call.
    note : str, optional
        Why the power is not known.
    """
    samples = [seconds for piece in slices for seconds in piece.samples]
    return {
        "energy_j": mean.watts * sum(samples) / len(samples) if mean and samples else None,
        "power_w": mean.watts if mean else None,
        "power_rails_w": mean.rails_w if mean else {},
        "power_sensor": sensor,
        "power_readings": mean.readings if mean else None,
        "power_missing": mean.missing if mean else None,
        "power_drift": mean.drift if mean else None,
        "power_note": note,
    }


def missing_note(readings: Sequence[EnergyReading]) -> str:
    """Return how many readings are missing, as the reason why a power is not known."""
    missing = sum(reading.joules is None for reading in readings)
    return f"{missing} of {len(readings)} readings of the sensor are missing"
