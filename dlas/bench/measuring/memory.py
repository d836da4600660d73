"""Peak memory of a process: what it allocates, and all that it has in memory."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from dlas.bench.measuring import allocator

SELF = Path("/proc/self")


@dataclass(frozen=True)
class AllocatedMemory:
    """The peak of what this process has allocated, above what it had at :meth:`start`.

    Anonymous memory alone: pages of files, such as a library's code, which the system reads when they are
    used and may drop again, are left out.  The kernel's high-water mark is of all pages, so that those of
    files are subtracted.  It counts pages by processor, which makes a peak uncertain by about 0.2 MB.

    Examples
    --------
    >>> memory = AllocatedMemory.start()
    >>> block = b"1" * 50_000_000
    >>> del block
    >>> peak = None if memory is None else memory.peak_bytes()
    >>> peak is None or 49e6 < peak < 52e6
    True
    """

    start_bytes: int
    """Anonymous memory at the start."""
    process: Path = field(default=SELF)
    """The process's folder in ``/proc``."""

    @classmethod
    def start(cls, process: Path = SELF) -> AllocatedMemory | None:
        """Return freed memory to the system and begin; None where the system does not tell the peak."""
        allocator.release()
        pages = _pages(process)
        if pages is None or not _reset_mark(process):
            return None
        return cls(pages[0], process)

    def peak_bytes(self) -> int | None:
        """Return the peak since the start or the last call, above the start; None if unknown."""
        peak, pages = _status(self.process, "VmHWM"), _pages(self.process)
        _reset_mark(self.process)
        if peak is None or pages is None:
            return None
        _, file_bytes = pages
        return max(0, peak - file_bytes - self.start_bytes)


@dataclass(frozen=True)
class ResidentMemory:
    """The peak of all that this process has in memory since :meth:`start`, above what it had at the start.

    The baseline matters: TVM and torch alone are hundreds of megabytes.

    Examples
    --------
    >>> memory = ResidentMemory.start()
    >>> memory.bytes_above() is None or memory.bytes_above() >= 0
    True
    """

    resident_bytes: int | None
    peak_bytes: int | None
    process: Path = field(default=SELF)

    @classmethod
    def start(cls, process: Path = SELF) -> ResidentMemory:
        """Reset the kernel's high-water mark, if it allows that, and record the current memory."""
        _reset_mark(process)  # without it, only a peak above the old mark counts
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


def _reset_mark(process: Path) -> bool:
    """Set the high-water mark to the current memory; return whether the kernel allows it."""
    with suppress(OSError):
        (process / "clear_refs").write_text("5")
        return True
    return False


def _pages(process: Path) -> tuple[int, int] | None:
    """Return the bytes of anonymous pages and of files' pages, counted exactly; None if unknown."""
    fields = _fields(process / "smaps_rollup")  # the kernel walks all pages whenever it is read
    resident, anonymous = fields.get("Rss"), fields.get("Anonymous")
    return None if resident is None or anonymous is None else (anonymous, resident - anonymous)


def _status(process: Path, name: str) -> int | None:
    """Return a field of a process's status, in bytes."""
    return _fields(process / "status").get(name)


def _fields(path: Path) -> dict[str, int]:
    """Return the sizes that one of a process's files tells, in bytes; none where it is missing."""
    try:
        lines = path.read_text().splitlines()
    except OSError:
        return {}
    split = [line.split() for line in lines if line.endswith(" kB")]
    return {name.rstrip(":"): 1024 * int(size) for name, *_, size, _ in split if size.isdigit()}
