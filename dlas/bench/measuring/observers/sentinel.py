"""The sentinel: a fixed kernel that shows when the machine changes speed."""

from __future__ import annotations

import os
import statistics
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Self

import numpy as np
from numpy.lib.stride_tricks import as_strided

from dlas.bench.measuring.machine import Machine
from dlas.bench.measuring.observers.observer import Observer, Slice

NAME = "sentinel"
NUMBERS, PASSES = 16384, 30
"""Square roots in a pass, and passes in a run."""
RUNS, RUNS_TOGETHER = 5, 31
"""Runs on one processor, and on several at once: the median of the latter spans what a hypervisor takes to
spread processors that it woke on one core.
"""


class Sentinel(Observer):
    """Times the kernel before and after.

    Parameters
    ----------
    run : callable
        Returns the seconds of one run.
    """

    def __init__(self, run: Callable[[], float]) -> None:
        self._run = run
        self._before_s = 0.0

    @classmethod
    def here(cls, machine: Machine, on_gpu: bool) -> Self | None:
        """Return an observer of the processors that this process may use.

        Of a program on a GPU there is none: what the processors do says nothing about its time.
        """
        return None if on_gpu else cls(sentinel)

    def before(self) -> None:
        """Run it."""
        self._before_s = self._run()

    def after(self) -> list[float]:
        """Return the seconds before and after."""
        return [self._before_s, self._run()]

    @classmethod
    def fields(cls, slices: Sequence[Slice]) -> dict[str, Any]:
        """Return ``sentinel_s``, before and after each slice."""
        return {"sentinel_s": runs(slices)}

    @classmethod
    def disturbances(cls, piece: Slice, slices: Sequence[Slice]) -> Mapping[str, float]:
        """Return the ``drift``: how much slower it was than at its best; nothing where it did not watch."""
        if NAME not in piece.seen:
            return {}
        return {"drift": max(piece.seen[NAME]) / min(runs([piece, *slices])) - 1}


def runs(slices: Sequence[Slice]) -> list[float]:
    """Return the seconds of its runs before and after each slice; none where it did not watch."""
    return [seconds for piece in slices for seconds in piece.seen.get(NAME, ())]


def sentinel(clock: Callable[[], float] = time.perf_counter) -> float:
    """Return the seconds of a fixed computation: the machine's current speed.

    All processors that this process may use run it at once, and the slowest counts:
    a hypervisor may put two of them on one core, which a run on one would not show.
    Its data fits in a second-level cache, so it depends on little but the clock.  The
    median of several runs excludes an interruption.
    """
    processors = sorted(os.sched_getaffinity(0))
    if len(processors) == 1:
        return _arithmetic(clock, RUNS)
    started = threading.Barrier(len(processors))

    def alone_on(processor: int) -> float:
        os.sched_setaffinity(0, [processor])  # of this thread only
        started.wait()
        return _arithmetic(clock, RUNS_TOGETHER)

    with ThreadPoolExecutor(len(processors)) as pool:
        return max(pool.map(alone_on, processors))


def _arithmetic(clock: Callable[[], float], runs: int) -> float:
    x = np.linspace(1.0, 2.0, NUMBERS)
    shape, strides = (PASSES, NUMBERS), (0, x.itemsize)
    numbers, roots = as_strided(x, shape, strides), as_strided(np.empty_like(x), shape, strides)
    times = []
    for _ in range(runs):
        start = clock()
        np.sqrt(numbers, out=roots)  # one call: threads that make many wait for Python's lock
        times.append(clock() - start)
    return statistics.median(times)
