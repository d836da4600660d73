"""Files by which the kernel limits a clock."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from dlas.bench.clocks.guard import ClockSetting
from dlas.bench.measuring.kernel_files import read_text


@dataclass(frozen=True)
class LimitFiles:
    """The limits and the governor of one clock, which is pinned where both limits are the same.

    Parameters
    ----------
    root : Path
        The folder that holds sys.
    folder : str
        Of the files, below the root.
    """

    root: Path
    folder: str
    lower: str
    upper: str
    governor: str
    governors: str
    """The file that lists governors; under ``userspace`` nothing changes the clock by itself."""

    def plan(self, value: str) -> list[ClockSetting]:
        """Return what pinning changes: the governor where it may, then the limits.

        Raises
        ------
        OSError
            If a limit cannot be read.
        """
        lower, upper = self._as_found(self.lower, value), self._as_found(self.upper, value)
        # In this order the lower limit is never above the upper one, which the kernel would refuse.
        limits = [upper, lower] if int(value) > int(upper.found or 0) else [lower, upper]
        governors = (self.text(self.governors) or "").split()
        own = [self._as_found(self.governor, "userspace")] if "userspace" in governors else []
        return [each for each in (*own, *limits) if each.found != each.value]

    def text(self, name: str) -> str | None:
        """Return what a file says, None where it cannot be read."""
        return read_text(self.root / self.folder / name)

    def number(self, name: str) -> int | None:
        """Return the whole number that a file says."""
        said = self.text(name) or ""
        return int(said) if said.isdecimal() else None

    def numbers(self, name: str) -> Sequence[int]:
        """Return the whole numbers that a file lists."""
        return [int(word) for word in (self.text(name) or "").split() if word.isdecimal()]

    def setting(self, name: str, found: str | None, value: str) -> ClockSetting:
        """Return the change of a file."""
        return ClockSetting("file", f"{self.folder}/{name}", found, value)

    def _as_found(self, name: str, value: str) -> ClockSetting:
        found = (self.root / self.folder / name).read_text(errors="replace").strip()
        return self.setting(name, found, value)
