"""Counters of the processor's own, through Linux's ``perf_event_open``.

Python has no wrapper of this system call that is kept, and the tool ``perf`` counts whole processes.
"""

from __future__ import annotations

import ctypes
import os
import platform
import struct
from collections.abc import Callable, Iterable
from pathlib import Path

CALL_NUMBERS = {"x86_64": 298, "aarch64": 241, "armv7l": 364, "riscv64": 241}
"""The number of the system call by ``platform.machine()``."""
EVENTS = {"instructions": 1, "cycles": 0, "cache_misses": 3}
"""Events that Linux knows on all processors, PERF_COUNT_HW_*."""
TIMES = 3
"""PERF_FORMAT_TOTAL_TIME_ENABLED and _RUNNING: with a count comes how long it was on, and how long it ran."""
FLAGS = 1 << 1 | 1 << 5 | 1 << 6
"""Of threads that begin later too (inherit), without the kernel's and the hypervisor's instructions."""
ATTRIBUTES = struct.Struct("IIQQQQQ16x")
"""struct perf_event_attr, first version: type, size, config, period, sample type, format of reads, flags."""
COUNT = struct.Struct("QQQ")
TASKS = Path("/proc/self/task")

Open = Callable[[str, int], int]
"""Returns the file descriptor of an event's counter for a thread; raises OSError where there is none."""


def open_counter(event: str, thread: int) -> int:
    """Return the file descriptor of a counter that runs.

    Parameters
    ----------
    event : str
        One of :data:`EVENTS`.
    thread : int
        Its number in the system; 0 for the calling one.

    Raises
    ------
    OSError
        If the machine has no such counter, or does not show it.
    """
    number = CALL_NUMBERS.get(platform.machine())
    if number is None or os.name != "posix":
        raise OSError(f"the number of perf_event_open on {platform.machine()} is not known")
    attributes = ATTRIBUTES.pack(0, ATTRIBUTES.size, EVENTS[event], 0, 0, TIMES, FLAGS)
    libc = ctypes.CDLL(None, use_errno=True)
    handle = int(libc.syscall(number, ctypes.c_char_p(attributes), thread, -1, -1, ctypes.c_ulong(0)))
    if handle < 0:
        error = ctypes.get_errno()
        raise OSError(error, os.strerror(error))
    return handle


class PerfEvents:
    """Counts events of all threads of this process.

    Parameters
    ----------
    open_one : callable, optional
    """

    def __init__(self, open_one: Open = open_counter) -> None:
        self._open = open_one
        self._handles: dict[str, list[int]] = {}

    def start(self) -> None:
        """Begin to count, from 0."""
        self.stop()
        for event in EVENTS:
            if handles := self._opened(event, map(int, os.listdir(TASKS))):
                self._handles[event] = handles

    def stop(self) -> dict[str, float]:
        """Stop, and return the counts by event; those are missing that the machine has no counter for.

        Where events share a counter, each was counted for a part of the time: counts are then scaled to all
        of it.
        """
        counts: dict[str, float] = {}
        for event, handles in self._handles.items():
            read = [COUNT.unpack(os.read(handle, COUNT.size)) for handle in handles]
            for handle in handles:
                os.close(handle)
            # A thread that slept all the time was never enabled.
            if all(running or not enabled for _, enabled, running in read):
                counts[event] = sum(
                    value * enabled / running if running else 0.0 for value, enabled, running in read
                )
        self._handles = {}
        return counts

    def _opened(self, event: str, threads: Iterable[int]) -> list[int]:
        """Open a counter for each thread that is still there; none where one of them cannot be counted."""
        handles: list[int] = []
        for thread in threads:
            try:
                handles.append(self._open(event, thread))
            except ProcessLookupError:
                continue
            except OSError:
                for handle in handles:
                    os.close(handle)
                return []
        return handles


def countable(open_one: Open = open_counter) -> bool:
    """Return whether instructions of this process can be counted."""
    try:
        os.close(open_one("instructions", 0))
    except OSError:
        return False
    return True
