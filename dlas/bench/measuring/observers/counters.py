"""Counters: instructions, cycles and cache misses, where the processor's own may be read."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Self

from dlas.bench.measuring.machine import Machine
from dlas.bench.measuring.observers.observer import Observer, Slice
from dlas.bench.measuring.perf_events import EVENTS, PerfEvents, countable

NAME = "counters"
COUNTER = "perf_event_open"
"""What counted, as rows name it."""


class Counters(Observer):
    """Counts from right before the samples until right after them, in all threads of the process.

    Parameters
    ----------
    events : PerfEvents, optional
    """

    def __init__(self, events: PerfEvents | None = None) -> None:
        self._events = events or PerfEvents()

    @classmethod
    def here(cls, machine: Machine, on_gpu: bool) -> Self | None:
        """Return an observer of this process; None on a GPU, and where nothing can be counted."""
        return None if on_gpu or not countable() else cls()

    def before(self) -> None:
        """Begin to count."""
        self._events.start()

    def after(self) -> dict[str, float]:
        """Return counts by event."""
        return self._events.stop()

    @classmethod
    def fields(cls, slices: Sequence[Slice]) -> dict[str, Any]:
        """Return :data:`EVENTS` a call, and ``counter``, by what; null where a slice lacks it."""
        calls = sum(len(piece.samples) * piece.calls for piece in slices)
        counts: dict[str, Any] = {}
        for event in EVENTS:
            seen = [piece.seen.get(NAME, {}).get(event) for piece in slices]
            counts[event] = sum(seen) / calls if calls and None not in seen else None
        return {**counts, "counter": COUNTER if counts["instructions"] is not None else None}
