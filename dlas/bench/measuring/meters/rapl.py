"""RAPL: the counters that processors of Intel and AMD keep of their packages and memory."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from dlas.bench.measuring.kernel_files import read_number, read_text
from dlas.bench.measuring.meters.counters import EnergyCounters
from dlas.bench.measuring.meters.meter import Meter

POWERCAP = "sys/class/powercap"
PERIOD_S = 0.1
"""Counters move once a millisecond, which is a hundredth of this."""


def find(root: Path, on_gpu: bool) -> Meter | None:
    """Return a meter of all packages with their memory; None of a GPU, which is in none of them."""
    counters = [] if on_gpu else find_counters(root / POWERCAP)
    return EnergyCounters("rapl", counters, PERIOD_S) if counters else None


@dataclass(frozen=True)
class RaplCounter:
    """The counter of a package, or of its memory."""

    label: str
    """``package-0``, or ``package-0 dram``."""
    file: Path
    """Its microjoules."""
    full_j: float
    """Its largest value; on some processors a minute's worth."""

    def joules(self) -> float | None:
        """Return its value now, None where it cannot be read."""
        microjoules = read_number(self.file)
        return None if microjoules is None else microjoules / 1e6


def find_counters(folder: Path) -> list[RaplCounter]:
    """Return the counters of each package, and of its memory where that has one.

    Empty where there is none, or one that may not be read: Linux lets only root read them by default.
    """
    names = {zone: read_text(zone / "name") or "" for zone in sorted(folder.glob("intel-rapl:*"))}
    counters = [
        RaplCounter(
            _label(zone, names), zone / "energy_uj", (read_number(zone / "max_energy_range_uj") or 0) / 1e6
        )
        for zone, name in names.items()
        if name.startswith(("package", "dram"))
    ]
    return [] if any(not each.full_j or each.joules() is None for each in counters) else counters


def _label(zone: Path, names: dict[Path, str]) -> str:
    """Return a zone's name, after that of the package that it is a part of."""
    package = names.get(zone.with_name(zone.name.rpartition(":")[0]), "")
    return f"{package} {names[zone]}".strip()
