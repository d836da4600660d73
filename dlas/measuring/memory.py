"""The most memory that a process has held."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path


@dataclass(frozen=True)
class PeakMemory:
    """The most memory this process has held since :meth:`start`, above what it held then.

    The baseline matters: TVM and torch alone are hundreds of megabytes.

    Examples
    --------
    >>> memory = PeakMemory.start()
    >>> memory.bytes_above() is None or memory.bytes_above() >= 0
    True
    """

    resident_bytes: int | None
    peak_bytes: int | None
    process: Path = field(default=Path("/proc/self"))

    @classmethod
    def start(cls, process: Path = Path("/proc/self")) -> PeakMemory:
        """Reset the kernel's high-water mark, where it allows that, and note where memory stands."""
        with suppress(OSError):  # a mark that stays counts only where it is passed later
            (process / "clear_refs").write_text("5")
        return cls(_status(process, "VmRSS"), _status(process, "VmHWM"), process)

    def bytes_above(self) -> int | None:
        """Return the peak since the start, less what was resident then; None where it cannot be told."""
        peak = _status(self.process, "VmHWM")
        if peak is None or self.resident_bytes is None or self.peak_bytes is None:
            return None
        slack = 4 * 2**20  # the kernel counts pages a processor at a time and is this far behind
        if peak <= self.peak_bytes and self.peak_bytes > self.resident_bytes + slack:
            return None  # an old peak that could not be reset hides whatever came since
        return max(0, peak - self.resident_bytes)


def _status(process: Path, name: str) -> int | None:
    """Return a field of a process's status, in bytes."""
    try:
        lines = (process / "status").read_text().splitlines()
    except OSError:
        return None
    values = [line.split()[1] for line in lines if line.startswith(f"{name}:")]
    return int(values[0]) * 1024 if values else None
