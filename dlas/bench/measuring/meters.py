"""Meters of energy: counters of processors, and sensors of boards, as the kernel shows them."""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from dlas.bench.measuring.kernel_files import read_number, read_text

POWERCAP = "sys/class/powercap"
HWMON = "sys/class/hwmon"
TOTALS = (
    {"VDD_IN"},  # TX2 NX, Xavier NX, Orin NX and Nano: all that the module takes
    {"5V_IN"},
    {"POM_5V_IN"},  # Nano
    {"GPU", "CPU", "SOC", "CV", "VDDRQ", "SYS5V"},  # AGX Xavier: none of its rails feeds another one
)
"""Rails of a Jetson that add up to its module.  Others may overlap, and what they add up to is not known."""


class Meter(ABC):
    """Counts energy from one call to the next."""

    every_s: float
    """How often it must be asked, in seconds."""

    @abstractmethod
    def start(self) -> None:
        """Begin to count."""

    @abstractmethod
    def used(self) -> float | None:
        """Return the joules since the last call, None where they cannot be known."""


def find_meter(root: Path, on_gpu: bool) -> Meter | None:
    """Return the machine's meter, None where there is none that may be read.

    Parameters
    ----------
    root : Path
        The folder that holds sys.
    on_gpu : bool
        Whether a GPU's energy must be in it: only that of a whole module has it.
    """
    rails = find_rails(root / HWMON)
    if rails:
        return PowerRails(rails)
    counters = [] if on_gpu else find_counters(root / POWERCAP)
    return EnergyCounters(counters) if counters else None


@dataclass(frozen=True)
class Counter:
    """A counter of energy that begins again from 0 where it is full."""

    file: Path
    """Its microjoules."""
    most: int
    """Its largest value."""

    def read(self) -> int | None:
        """Return the microjoules, None where they cannot be read."""
        return read_number(self.file)


def find_counters(folder: Path) -> list[Counter]:
    """Return the counters (RAPL) of each processor's package, and of its memory where that has one.

    Empty where there is none, or one that may not be read: Linux lets only root read them by default.
    """
    wanted = [
        zone
        for zone in sorted(folder.glob("intel-rapl:*"))
        if (read_text(zone / "name") or "").startswith(("package", "dram"))
    ]
    counters = [
        Counter(zone / "energy_uj", read_number(zone / "max_energy_range_uj") or 0) for zone in wanted
    ]
    return [] if any(not each.most or each.read() is None for each in counters) else counters


class EnergyCounters(Meter):
    """Counters that the processors keep themselves.

    Parameters
    ----------
    counters : sequence of Counter
    """

    every_s = 30.0
    """Several times while the smallest counters (65 kJ) fill up: a second round would be lost."""

    def __init__(self, counters: Sequence[Counter]) -> None:
        self._counters = counters
        self._last: list[int | None] = [None] * len(counters)

    def start(self) -> None:
        """Read the counters."""
        self._last = [counter.read() for counter in self._counters]

    def used(self) -> float | None:
        """Return the joules since the last call; a counter that is smaller now has begun again."""
        before = self._last
        self.start()
        total = 0
        for counter, old, new in zip(self._counters, before, self._last, strict=True):
            if old is None or new is None:
                return None
            total += new - old if new >= old else new - old + counter.most
        return total / 1e6


@dataclass(frozen=True)
class Rail:
    """A rail that a sensor watches, by the files of its millivolts and milliamperes."""

    label: str
    voltage: Path
    current: Path

    def watts(self) -> float | None:
        """Return the power now, None where it cannot be read."""
        millivolts, milliamperes = read_number(self.voltage), read_number(self.current)
        return None if millivolts is None or milliamperes is None else millivolts * milliamperes / 1e6


def find_rails(folder: Path) -> list[Rail]:
    """Return rails of INA3221 sensors that add up to a Jetson's module; empty where none are known to."""
    rails = {}
    for sensor in sorted(folder.glob("hwmon*")):
        if read_text(sensor / "name") == "ina3221":
            for channel in (1, 2, 3):
                label = read_text(sensor / f"in{channel}_label")
                if label:
                    files = (sensor / f"in{channel}_input", sensor / f"curr{channel}_input")
                    rails[label] = Rail(label, *files)
    total = next((labels for labels in TOTALS if labels <= rails.keys()), set())
    found = [rails[label] for label in sorted(total)]
    return [] if any(rail.watts() is None for rail in found) else found


class PowerRails(Meter):
    """Sensors that tell the power now, which is added up over time.

    Parameters
    ----------
    rails : sequence of Rail
    clock : callable, optional
    """

    every_s = 0.05
    """A reading waits about a millisecond for each sensor's bus, in which the processors work on."""

    def __init__(self, rails: Sequence[Rail], clock: Callable[[], float] = time.perf_counter) -> None:
        self._rails, self._clock = rails, clock
        self._last_s, self._last_watts = 0.0, self._watts()

    def start(self) -> None:
        """Read the power."""
        self._last_s, self._last_watts = self._clock(), self._watts()

    def used(self) -> float | None:
        """Return the joules since the last call: the mean of the power then and now, times the seconds."""
        before_s, before = self._last_s, self._last_watts
        self.start()
        if before is None or self._last_watts is None:
            return None
        return (before + self._last_watts) / 2 * (self._last_s - before_s)

    def _watts(self) -> float | None:
        watts = [rail.watts() for rail in self._rails]
        known = [each for each in watts if each is not None]
        return sum(known) if len(known) == len(watts) else None
