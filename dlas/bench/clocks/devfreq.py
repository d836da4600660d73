"""Clocks of GPUs and memory controllers that devfreq sets."""

from __future__ import annotations

from fnmatch import fnmatch
from pathlib import Path

from dlas.bench.clocks.domain import ClockDomain, ClockSteps
from dlas.bench.clocks.guard import ClockSetting
from dlas.bench.clocks.limits import LimitFiles

DEVICES = "sys/class/devfreq"
PATTERNS = {
    "gpu": ("*.gv11b", "*.gp10b", "*.ga10b", "*.gm20b", "*.mali", "*.gpu"),
    "memory": ("*.emc", "*dmc*", "*memory*", "*ddr*"),
}
"""What names a device of each domain."""


class DevfreqClock(ClockDomain):
    """The clock of one device; its files are in Hz.

    Parameters
    ----------
    root : Path
        The folder that holds sys.
    name : str
        ``gpu`` or ``memory``.
    device : str
    """

    def __init__(self, root: Path, name: str, device: str) -> None:
        self.name = name
        governors = ("governor", "available_governors")
        self._files = LimitFiles(root, f"{DEVICES}/{device}", "min_freq", "max_freq", *governors)

    def steps_hz(self) -> ClockSteps:
        """Return what the kernel lists."""
        return ClockSteps.of(map(float, self._files.numbers("available_frequencies")))

    def plan(self, hz: float) -> list[ClockSetting]:
        """Return the changes of governor and limits; the limits bind every governor."""
        return self._files.plan(str(round(hz)))

    def applied_hz(self) -> tuple[float, ...]:
        """Return the upper limit."""
        upper = self._files.number("max_freq")
        return () if upper is None else (float(upper),)

    def observed_hz(self) -> tuple[float, ...]:
        """Return the clock now."""
        now = self._files.number("cur_freq")
        return () if now is None else (float(now),)


def find_devfreq(root: Path, name: str) -> DevfreqClock | None:
    """Return the clock of the GPU or the memory; None where devfreq has none, or lists no steps for it."""
    for folder in sorted((root / DEVICES).glob("*")):
        if any(fnmatch(folder.name, pattern) for pattern in PATTERNS[name]):
            clock = DevfreqClock(root, name, folder.name)
            if clock.steps_hz().hz:
                return clock
    return None
