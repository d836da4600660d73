"""All observers of a measurement together."""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from typing import Any, Protocol, Self

from dlas.bench.measuring.machine import Machine
from dlas.bench.measuring.observers.clocks import Clocks
from dlas.bench.measuring.observers.counters import Counters
from dlas.bench.measuring.observers.energy import Energy
from dlas.bench.measuring.observers.latency import Latency
from dlas.bench.measuring.observers.observer import Observer, Slice
from dlas.bench.measuring.observers.processors import Processors
from dlas.bench.measuring.observers.sentinel import Sentinel
from dlas.bench.measuring.observers.thermal import Thermal

OBSERVERS: dict[str, type[Observer]] = {
    "latency": Latency,
    # Outside of the counters: spinning threads of the program may make it wait.
    "sentinel": Sentinel,
    "processors": Processors,
    "clocks": Clocks,
    "thermal": Thermal,
    "energy": Energy,
    # The innermost: of the others it counts only those that look meanwhile, in threads of their own.
    "counters": Counters,
}
"""By name, from the outermost: the first begins first and ends last."""


class Watching(Protocol):
    """What the loop that takes samples calls: observers here, or on a board."""

    def before(self) -> None:
        """Begin a slice."""

    def after(self) -> dict[str, Any]:
        """End the slice, and return what each observer saw, by its name."""

    def close(self) -> None:
        """Stop watching, also in the middle of a slice."""


class Watch:
    """Observers of this machine.

    Parameters
    ----------
    observers : mapping of str to Observer
        By name, from the outermost.
    """

    def __init__(self, observers: Mapping[str, Observer]) -> None:
        self._observers = observers
        self._threads: list[threading.Thread] = []
        self._ended = threading.Event()

    @classmethod
    def here(cls, on_gpu: bool = False, machine: Machine | None = None, in_children: bool = False) -> Self:
        """Return the observers that have something to watch on this machine.

        Parameters
        ----------
        on_gpu : bool, optional
            Whether the program runs on the machine's GPU.
        in_children : bool, optional
            Whether it runs in processes that this one has started, whose time is then its own, and whose
            instructions nobody counts.
        """
        machine = machine or Machine()
        found = {name: kind.here(machine, on_gpu) for name, kind in OBSERVERS.items()}
        if in_children:
            found |= {"processors": Processors.of_children(machine), "counters": None}
        return cls({name: observer for name, observer in found.items() if observer is not None})

    def before(self) -> None:
        """Begin a slice: each observer in its order, and threads for those that look during it."""
        self.close()
        for observer in self._observers.values():
            observer.before()
        self._ended = threading.Event()
        self._threads = [
            threading.Thread(target=_look, args=(observer, observer.every_s, self._ended), daemon=True)
            for observer in self._observers.values()
            if observer.every_s is not None
        ]
        for thread in self._threads:
            thread.start()

    def after(self) -> dict[str, Any]:
        """End the slice: each observer in the opposite order."""
        self.close()
        return {name: observer.after() for name, observer in reversed(list(self._observers.items()))}

    def close(self) -> None:
        """Stop the threads."""
        self._ended.set()
        for thread in self._threads:
            thread.join()
        self._threads = []


def fields(slices: Sequence[Slice]) -> dict[str, Any]:
    """Return the fields of a row that all observers know."""
    return {name: value for kind in OBSERVERS.values() for name, value in kind.fields(slices).items()}


def disturbances(piece: Slice, slices: Sequence[Slice]) -> dict[str, float]:
    """Return how disturbed a slice was beside others, by all observers."""
    found = (kind.disturbances(piece, slices) for kind in OBSERVERS.values())
    return {name: value for measures in found for name, value in measures.items()}


def _look(observer: Observer, every_s: float, ended: threading.Event) -> None:
    while not ended.wait(every_s):
        observer.during()
