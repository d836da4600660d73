"""Energy: what the machine's own meter counts while the program runs."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Self

from dlas.bench.measuring.machine import Machine
from dlas.bench.measuring.meters import Meter, find_meter
from dlas.bench.measuring.observers.observer import Observer, Slice

NAME = "energy"
SHARE = 0.9
"""The least share of the watched time that samples must take: in the rest the program stands still, or
runs untimed.  Above it, energy is too low by a tenth at most."""


class Energy(Observer):
    """Adds up what a meter counts from right before the samples until right after them.

    Parameters
    ----------
    meter : Meter
    clock : callable, optional
    """

    def __init__(self, meter: Meter, clock: Callable[[], float] = time.perf_counter) -> None:
        self.every_s = meter.every_s
        self._meter, self._clock = meter, clock
        self._joules: list[float | None] = []
        self._begun_s = 0.0

    @classmethod
    def here(cls, machine: Machine, on_gpu: bool) -> Self | None:
        """Return an observer with the machine's meter, None where it has none that may be read."""
        meter = find_meter(machine.root, on_gpu)
        return None if meter is None else cls(meter)

    def before(self) -> None:
        """Begin to count."""
        self._joules = []
        self._begun_s = self._clock()
        self._meter.start()

    def during(self) -> None:
        """Count what has been used since the last time."""
        self._joules.append(self._meter.used())

    def after(self) -> list[float] | None:
        """Return joules and seconds; None where the meter could not be read."""
        self.during()
        seconds = self._clock() - self._begun_s
        known = [joules for joules in self._joules if joules is not None]
        return [sum(known), seconds] if len(known) == len(self._joules) else None

    @classmethod
    def fields(cls, slices: Sequence[Slice]) -> dict[str, float | None]:
        """Return ``energy_j``: the mean power times the mean time of a call."""
        seen = [piece.seen.get(NAME) for piece in slices]
        known = [each for each in seen if each is not None]
        samples = [seconds for piece in slices for seconds in piece.samples]
        if len(known) < len(slices) or not samples:
            return {"energy_j": None}
        joules, watched_s = (sum(amounts) for amounts in zip(*known, strict=True))
        sampled_s = sum(sum(piece.samples) * piece.calls for piece in slices)
        if not 0 < SHARE * watched_s <= sampled_s:
            return {"energy_j": None}
        return {"energy_j": joules / watched_s * sum(samples) / len(samples)}
