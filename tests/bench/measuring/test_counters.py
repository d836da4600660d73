"""Counters of the processor's own, played here by files, since most virtual machines hide them."""

from __future__ import annotations

import os
import struct
from pathlib import Path
from typing import Any

import pytest

from dlas.bench.measuring.machine import Machine
from dlas.bench.measuring.observers import counters
from dlas.bench.measuring.observers.counters import COUNTER, NAME, Counters
from dlas.bench.measuring.observers.observer import Slice
from dlas.bench.measuring.perf_events import EVENTS, PerfEvents, countable, open_counter


class Counting:
    """A machine whose counters stand in files: the value, how long it was on, and how long it counted."""

    def __init__(self, folder: Path, **values: tuple[int, int, int]) -> None:
        self.folder, self.values = folder, values
        self.opened: list[tuple[str, int]] = []

    def open(self, event: str, thread: int) -> int:
        if event not in self.values:
            raise OSError(f"no counter for {event}")
        path = self.folder / event
        path.write_bytes(struct.pack("QQQ", *self.values[event]))
        self.opened.append((event, thread))
        return os.open(path, os.O_RDONLY)


def test_counts_are_of_all_threads_and_scaled_to_the_time_that_they_shared(tmp_path: Path) -> None:
    machine = Counting(tmp_path, instructions=(1000, 50, 50), cycles=(300, 60, 20))
    events = PerfEvents(machine.open)
    events.start()
    threads = len([thread for event, thread in machine.opened if event == "instructions"])
    assert threads == len(os.listdir("/proc/self/task"))
    assert events.stop() == {"instructions": 1000 * threads, "cycles": 900 * threads}
    assert events.stop() == {}


def test_a_counter_that_never_ran_tells_nothing(tmp_path: Path) -> None:
    events = PerfEvents(Counting(tmp_path, instructions=(0, 50, 0), cycles=(7, 0, 0)).open)
    events.start()
    assert events.stop() == {"cycles": 0}, "a thread that slept all the time has done nothing"


def test_a_row_tells_the_counts_of_one_call(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    counted = {"instructions": 600.0, "cycles": 300.0}
    slices: list[Any] = [Slice(samples=[0.1, 0.1, 0.1], calls=2, seen={NAME: counted}) for _ in range(2)]
    assert Counters.fields(slices) == {
        "instructions": 100.0,
        "cycles": 50.0,
        "cache_misses": None,
        "counter": COUNTER,
    }
    assert set(Counters.fields([])) == {*EVENTS, "counter"}
    assert not any(Counters.fields([]).values())
    monkeypatch.setattr(counters, "countable", lambda: True)
    assert isinstance(Counters.here(Machine(), on_gpu=False), Counters)
    assert Counters.here(Machine(), on_gpu=True) is None
    monkeypatch.setattr(counters, "countable", lambda: False)
    assert Counters.here(Machine(), on_gpu=False) is None


def test_this_machine_counts_or_says_that_it_does_not() -> None:
    if not countable():
        with pytest.raises(OSError):
            open_counter("instructions", 0)
        return
    events = PerfEvents()
    events.start()
    sum(range(100_000))
    assert events.stop()["instructions"] > 100_000
