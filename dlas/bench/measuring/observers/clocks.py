"""Clocks: the frequencies of the processors that the program uses."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Self

from dlas.bench.measuring.machine import Machine
from dlas.bench.measuring.observers.observer import Observer, Slice

NAME = "clocks"


class Clocks(Observer):
    """Reads the kernel's current frequencies before, after and once a second in between.

    A reading takes about 0.1 ms for each processor, less than a thousandth of the time on eight.

    Parameters
    ----------
    machine : Machine
    """

    every_s = 1.0

    def __init__(self, machine: Machine) -> None:
        self._machine = machine
        self._processors = machine.allowed()
        self._read: list[float] = []

    @classmethod
    def here(cls, machine: Machine, on_gpu: bool) -> Self | None:
        """Return an observer of the processors that this process may use; None for programs on a GPU."""
        return None if on_gpu or not machine.frequencies(machine.allowed()) else cls(machine)

    def before(self) -> None:
        """Read for the first time."""
        self._read = []
        self.during()

    def during(self) -> None:
        """Read all processors once."""
        self._read += self._machine.frequencies(self._processors)

    def after(self) -> list[float]:
        """Return every frequency that was read, in Hz."""
        self.during()
        return self._read

    @classmethod
    def fields(cls, slices: Sequence[Slice]) -> dict[str, float | None]:
        """Return ``clock_low_hz``, ``clock_mean_hz`` and ``clock_high_hz``."""
        read = [hertz for piece in slices for hertz in piece.seen.get(NAME, ())]
        return {
            "clock_low_hz": min(read, default=None),
            "clock_mean_hz": sum(read) / len(read) if read else None,
            "clock_high_hz": max(read, default=None),
        }
