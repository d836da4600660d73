"""Clocks: the frequencies of the processors that the program uses, or of its GPU."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Self

from dlas.bench.measuring.machine import Machine
from dlas.bench.measuring.nvml import NvmlGpu, nvml_gpu
from dlas.bench.measuring.observers.observer import Observer, Slice

NAME = "clocks"
PROCESSORS, GPU, MEMORY = "processors", "gpu", "memory"

ClockReadings = Mapping[str, list[float]]
"""Frequencies in Hz, by what they are of."""


class Clocks(Observer):
    """Reads current frequencies before, after and once a second in between.

    A reading takes about 0.1 ms for each processor, less than a thousandth of the time on eight.

    Parameters
    ----------
    read : callable
        Returns frequencies now.
    """

    every_s = 1.0

    def __init__(self, read: Callable[[], ClockReadings]) -> None:
        self._read = read
        self._seen: dict[str, list[float]] = {}

    @classmethod
    def here(cls, machine: Machine, on_gpu: bool) -> Self | None:
        """Return an observer of the processors that this process may use, or of the GPU by NVML."""
        if on_gpu:
            gpu = nvml_gpu()
            return None if gpu is None else cls(partial(_of_gpu, gpu))
        processors = machine.allowed()
        if not machine.frequencies(processors):
            return None
        return cls(lambda: {PROCESSORS: machine.frequencies(processors)})

    def before(self) -> None:
        """Read for the first time."""
        self._seen = {}
        self.during()

    def during(self) -> None:
        """Read all of them once."""
        for name, hertz in self._read().items():
            self._seen.setdefault(name, []).extend(hertz)

    def after(self) -> dict[str, list[float]]:
        """Return every frequency that was read, in Hz, by what it is of."""
        self.during()
        return self._seen

    @classmethod
    def fields(cls, slices: Sequence[Slice]) -> dict[str, float | None]:
        """Return the lowest, mean and highest of processors, and the means of a GPU and its memory."""
        processors, gpu, memory = (
            [hertz for piece in slices for hertz in piece.seen.get(NAME, {}).get(name, ())]
            for name in (PROCESSORS, GPU, MEMORY)
        )
        return {
            "clock_low_hz": min(processors, default=None),
            "clock_mean_hz": _mean(processors),
            "clock_high_hz": max(processors, default=None),
            "gpu_clock_mean_hz": _mean(gpu),
            "gpu_memory_clock_mean_hz": _mean(memory),
        }


def _of_gpu(gpu: NvmlGpu) -> ClockReadings:
    """Return the frequencies of a GPU now, without those that it does not tell."""
    read = zip((GPU, MEMORY), gpu.clocks_hz(), strict=True)
    return {name: [hertz] for name, hertz in read if hertz is not None}


def _mean(hertz: Sequence[float]) -> float | None:
    return sum(hertz) / len(hertz) if hertz else None
