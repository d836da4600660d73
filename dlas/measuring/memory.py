"""Peak memory of a process."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path


@dataclass(frozen=True)
class PeakMemory:
    """The peak memory of this process since :meth:`start`, above its memory at the start.

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
        """Reset the kernel's high-water mark, if it allows that, and record the current memory."""
        with suppress(OSError):  # without a reset, only a peak above the old mark counts
            (process / "clear_refs").write_text("5")
        return cls(_status(process, "VmRSS"), _status(process, "VmHWM"), process)

    def bytes_above(self) -> int | None:
        """Return the peak since the start, minus the resident memory at the start; None if unknown."""
        peak = _status(self.process, "VmHWM")
        if peak is None or self.resident_bytes is None or self.peak_bytes is None:
            return None
        slack = 4 * 2**20  # the kernel counts pages by processor and lags this far behind
        if peak <= self.peak_bytes and self.peak_bytes > self.resident_bytes + slack:
            return None  # an old peak that could not be reset hides later ones
        return max(0, peak - self.resident_bytes)


def _status(process: Path, name: str) -> int | None:
    """Return a field of a process's status, in bytes."""
    try:
        lines = (process / "status").read_text().splitlines()
    except OSError:
        return None
    values = [line.split()[1] for line in lines if line.startswith(f"{name}:")]
    return int(values[0]) * 1024 if values else None
