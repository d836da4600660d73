"""The cache sentinel: a fixed kernel that another program on the same core slows as it slows layers."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Self

import numpy as np

from dlas.bench.measuring.machine import Machine
from dlas.bench.measuring.observers.observer import Slice
from dlas.bench.measuring.observers.sentinel import Sentinel, everywhere, middle

NAME = "cache_sentinel"
NUMBERS, PASSES = 32_768, 100
"""Numbers in each of two arrays, which a second-level cache holds, and passes over them in one call."""


class CacheSentinel(Sentinel):
    """Times sums in the second-level cache before and after.

    Another machine on the same core takes caches and instructions from layers, and hardly square roots: these
    say whether the machine was disturbed, and sums say by how much (``python -m benchmarks.sentinels``).
    """

    @classmethod
    def here(cls, machine: Machine, on_gpu: bool) -> Self | None:
        """Return an observer of the processors that this process may use; of a program on a GPU none."""
        return None if on_gpu else cls(cache_sentinel)

    @classmethod
    def fields(cls, slices: Sequence[Slice]) -> dict[str, Any]:
        """Return ``cache_sentinel_s``, before and after each slice."""
        return {"cache_sentinel_s": [seconds for piece in slices for seconds in piece.seen.get(NAME, ())]}

    @classmethod
    def disturbances(cls, piece: Slice, slices: Sequence[Slice]) -> Mapping[str, float]:
        """Return nothing: on a shared machine no slice would be undisturbed."""
        return {}


def cache_sentinel(clock: Callable[[], float] = time.perf_counter) -> float:
    """Return the seconds of sums in the second-level cache, the slowest of all processors."""
    return everywhere(lambda: _sums(clock))


def _sums(clock: Callable[[], float]) -> float:
    row, out = np.ones(NUMBERS, np.float32), np.empty(NUMBERS, np.float32)
    # All passes, over the same arrays, in one call: between short ones threads would wait for Python's lock.
    passes = np.broadcast_to(row, (PASSES, NUMBERS))
    outs = np.lib.stride_tricks.as_strided(out, passes.shape, (0, out.itemsize))
    return middle(lambda: np.add(passes, row, out=outs), clock)
