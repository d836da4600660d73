"""The clock of a Jetson's memory, which its boot and power management processor (BPMP) sets."""

from __future__ import annotations

from pathlib import Path

from dlas.bench.clocks.domain import ClockDomain, ClockSteps
from dlas.bench.clocks.guard import ClockSetting
from dlas.bench.measuring.kernel_files import read_number, read_text

EMC = "sys/kernel/debug/bpmp/debug/clk/emc"
POSSIBLE = "sys/kernel/debug/bpmp/debug/emc/possible_rates"
"""The steps, in kHz."""


class EmcClock(ClockDomain):
    """The clock of the external memory controller, in debugfs, which root alone sees.

    Parameters
    ----------
    root : Path
        The folder that holds sys.
    """

    name = "memory"

    def __init__(self, root: Path) -> None:
        self._root = root

    def steps_hz(self) -> ClockSteps:
        """Return what the kernel lists within the limits, or all between those."""
        limits = [self._number("min_rate"), self._number("max_rate")]
        words = (read_text(self._root / POSSIBLE) or "").split()
        listed = [1e3 * int(word) for word in words if word.isdecimal()]
        if listed:
            least, most = limits[0] or 0.0, limits[1] or max(listed)
            return ClockSteps.of(hz for hz in listed if least <= hz <= most)
        return ClockSteps(tuple(hz for hz in limits if hz is not None), between=None not in limits)

    def plan(self, hz: float) -> list[ClockSetting]:
        """Return the changes: other requests are locked out, then the clock is set and switched on."""
        settings = [self._as_found("mrq_rate_locked", "1"), self._as_found("rate", str(round(hz)))]
        settings.append(self._as_found("state", "1"))
        # The clock moves by itself until it is locked: it is set even if it is there by chance.
        return [each for each in settings if each.found != each.value or each.place.endswith("/rate")]

    def applied_hz(self) -> tuple[float, ...]:
        """Return the rate that is set."""
        return self.observed_hz()

    def observed_hz(self) -> tuple[float, ...]:
        """Return the rate now."""
        rate = self._number("rate")
        return () if rate is None else (rate,)

    def _number(self, name: str) -> float | None:
        value = read_number(self._root / EMC / name)
        return None if value is None else float(value)

    def _as_found(self, name: str, value: str) -> ClockSetting:
        found = (self._root / EMC / name).read_text(errors="replace").strip()
        return ClockSetting("file", f"{EMC}/{name}", found, value)


def find_emc(root: Path) -> EmcClock | None:
    """Return the memory's clock; None where there is no such controller, or it is not shown."""
    clock = EmcClock(root)
    return clock if clock.observed_hz() else None
