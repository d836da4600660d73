"""The memory of a process with all that it has started.

Read from ``/proc``: psutil does not tell anonymous memory from mapped files, which do
not count here, and looks through all processes of the machine for a few descendants.
"""

from __future__ import annotations

import os
import resource
from collections.abc import Iterator
from pathlib import Path


def quick_bytes(pid: int) -> int:
    """Return the anonymous memory of a process and its descendants, quickly.

    What they share since a fork counts once for each of them, so it is never too little.
    """
    page = resource.getpagesize()
    return sum(_unshared_pages(each) for each in _tree(pid)) * page


def exact_bytes(pid: int) -> int:
    """Return the anonymous memory of a process and its descendants, each with its share of what is shared.

    The kernel takes milliseconds a gigabyte for it.
    """
    return sum(_proportional_bytes(each) for each in _tree(pid))


def _tree(pid: int) -> Iterator[int]:
    """Yield a process and its descendants, each before its own are looked for."""
    waiting = [pid]
    while waiting:
        current = waiting.pop()
        yield current
        try:
            for thread in os.listdir(f"/proc/{current}/task"):
                waiting += map(int, _text(current, f"task/{thread}/children").split())
        except OSError:
            continue  # it ended while we looked


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
