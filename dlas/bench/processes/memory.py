"""The memory of a process and its descendants.

Read from ``/proc``: psutil does not distinguish anonymous memory from mapped files, which do
not count here, and scans all processes of the machine to find descendants.
"""

from __future__ import annotations

import os
import resource
from collections.abc import Iterator
from pathlib import Path


def quick_bytes(pid: int) -> int:
    """Return the anonymous memory of a process and its descendants, quickly.

    Pages shared since a fork count once for each process, so it is never too low.
    """
    page = resource.getpagesize()
    return sum(_unshared_pages(process) for process in _tree(pid)) * page


def exact_bytes(pid: int) -> int:
    """Return the anonymous memory of a process and its descendants, shared pages divided among them.

    The kernel needs milliseconds for each gigabyte.
    """
    return sum(_proportional_bytes(process) for process in _tree(pid))


def _tree(pid: int) -> Iterator[int]:
    """Yield a process and its descendants, parents first."""
    pending = [pid]
    while pending:
        current = pending.pop()
        yield current
        try:
            for thread in os.listdir(f"/proc/{current}/task"):
                pending += map(int, _text(current, f"task/{thread}/children").split())
        except OSError:
            continue  # it has ended


def _unshared_pages(pid: int) -> int:
    try:
        resident, shared = _text(pid, "statm").split()[1:3]
    except (OSError, ValueError):
        return 0
    return int(resident) - int(shared)


def _proportional_bytes(pid: int) -> int:
    try:
        lines = _text(pid, "smaps_rollup").splitlines()
    except OSError:
        return 0
    return sum(int(line.split()[1]) * 1024 for line in lines if line.startswith("Pss_Anon:"))


def _text(pid: int, name: str) -> str:
    return Path(f"/proc/{pid}/{name}").read_text()
