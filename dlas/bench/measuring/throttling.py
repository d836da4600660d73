"""Temperatures, and what holds the clocks of processors back, as the kernel shows them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from dlas.bench.measuring.kernel_files import read_number, read_text

THERMAL = "sys/class/thermal"
CPUS = "sys/devices/system/cpu"
FIRMWARE = "sys/devices/platform/soc/soc:firmware/get_throttled"
"""Of a Raspberry Pi, whose firmware slows it down without the kernel."""
HELD_NOW = {1: "frequency capped", 2: "throttled", 3: "soft limit of temperature"}
"""Its bits that hold now; those of low voltage and of earlier times are not of the measurement."""
COOLS_BY_SPEED = re.compile(r"processor|cpu|gpu|freq|powerclamp|throttle", re.IGNORECASE)
"""Types of cooling devices that make something slower; a fan does not."""


@dataclass(frozen=True)
class ThermalState:
    """Temperature and throttling at one moment, or the worst of several."""

    temperature_c: float | None
    """The hottest sensor's."""
    throttled: bool | None
    """None where nothing tells it."""
    reason: str | None = None
    """What tells that it is throttled."""


class MachineHeat:
    """Thermal zones, cooling devices, throttling counters and limits of frequencies of a machine.

    Parameters
    ----------
    root : Path
        The folder that holds sys.
    """

    def __init__(self, root: Path) -> None:
        self._firmware = root / FIRMWARE
        self._zones = sorted((root / THERMAL).glob("thermal_zone*/temp"))
        self._coolers = {
            folder.name: (name, folder / "cur_state")
            for folder in sorted((root / THERMAL).glob("cooling_device*"))
            if (name := read_text(folder / "type") or "")
            and COOLS_BY_SPEED.search(name)
            and "fan" not in name.lower()
        }
        self._counters = sorted((root / CPUS).glob("cpu*/thermal_throttle/*_throttle_count"))
        self._limits = sorted((root / CPUS).glob("cpufreq/policy*/scaling_max_freq"))
        self._found_khz: dict[Path, int | None] = {}
        self._counted: dict[Path, int | None] = {}

    @property
    def tells(self) -> bool:
        """Whether there is anything to read but limits of frequencies, which tell only where they fall."""
        return bool(self._zones or self._coolers or self._counters) or self._firmware.exists()

    def start(self) -> None:
        """Begin to count; limits that are low already may be those that a point asked for."""
        self._found_khz = {file: read_number(file) for file in self._limits}
        self._counted = {file: read_number(file) for file in self._counters}

    def read(self) -> ThermalState:
        """Return the temperature now, and what throttled the machine since the start."""
        known = [*self._by_counters(), *self._by_coolers(), *self._by_firmware()]
        reasons = [reason for reason in (*known, *self._by_limits()) if reason]
        millidegrees = [value for file in self._zones if (value := read_number(file)) is not None]
        return ThermalState(
            max(millidegrees, default=0) / 1e3 if millidegrees else None,
            bool(reasons) if known or reasons else None,
            reasons[0] if reasons else None,
        )

    def _by_counters(self) -> Iterator[str]:
        """Yield, for each counter that can be read, the reason that it gives, empty for none."""
        for file, before in self._counted.items():
            now = read_number(file)
            if before is not None and now is not None:
                name = f"{file.parents[1].name} {file.name}"
                yield f"{name} rose by {now - before}" if now > before else ""

    def _by_coolers(self) -> Iterator[str]:
        """Yield the same for cooling devices, whose state is 0 where they do nothing."""
        for name, file in self._coolers.values():
            state = read_number(file)
            if state is not None:
                yield f"cooling device {name} at state {state}" if state > 0 else ""

    def _by_firmware(self) -> Iterator[str]:
        """Yield the same for the firmware of a Raspberry Pi."""
        said = (read_text(self._firmware) or "").removeprefix("0x")
        if re.fullmatch(r"[0-9a-fA-F]{1,8}", said):
            held = [why for bit, why in HELD_NOW.items() if int(said, 16) >> bit & 1]
            yield f"firmware: {', '.join(held)}" if held else ""

    def _by_limits(self) -> Iterator[str]:
        """Yield each limit of a frequency that is lower than at the start."""
        for file, found in self._found_khz.items():
            now = read_number(file)
            if found is not None and now is not None and now < found:
                yield f"{file.parent.name} limited to {now * 1e-6:.3g} of {found * 1e-6:.3g} GHz"
