"""INA3221: the sensors of voltage and current on the rails of a Jetson."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from dlas.bench.measuring.kernel_files import read_number, read_text
from dlas.bench.measuring.meters.meter import Meter
from dlas.bench.measuring.meters.powers import PowerMeter

HWMON = "sys/class/hwmon"
NAME = "ina3221"
CHANNELS = (1, 2, 3)
TOTALS = (
    {"VDD_IN"},  # TX2 NX, Xavier NX, Orin NX and Nano: all that the module takes
    {"5V_IN"},
    {"POM_5V_IN"},  # Nano
    {"GPU", "CPU", "SOC", "CV", "VDDRQ", "SYS5V"},  # AGX Xavier: none of its rails feeds another one
)
"""Rails that add up to a module.  Others may overlap, and what they add up to is not known."""
LEAST_PERIOD_S = 0.05
"""A reading waits about a millisecond for each sensor's bus, in which the processors work on."""


def find(root: Path, on_gpu: bool) -> Meter | None:
    """Return a meter of the module, its processors, GPU and memory; None where its rails are not known."""
    sensors = [
        folder for folder in sorted((root / HWMON).glob("hwmon*")) if read_text(folder / "name") == NAME
    ]
    rails = {rail.label: rail for folder in sensors for rail in rails_of(folder)}
    counted = next((labels for labels in TOTALS if labels <= rails.keys()), None)
    if counted is None or any(rails[label].watts() is None for label in counted):
        return None
    known = [rail for rail in rails.values() if rail.watts() is not None]
    updates = [(read_number(folder / "update_interval") or 0) / 1e3 for folder in sensors]
    return PowerMeter(NAME, known, sorted(counted), max(LEAST_PERIOD_S, *updates))


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


def rails_of(folder: Path) -> list[Rail]:
    """Return the rails of one sensor that have a name."""
    labels = {channel: read_text(folder / f"in{channel}_label") for channel in CHANNELS}
    return [
        Rail(label, folder / f"in{channel}_input", folder / f"curr{channel}_input")
        for channel, label in labels.items()
        if label
    ]
