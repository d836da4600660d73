"""Processors: what the program, other processes and the hypervisor took of them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from functools import partial
from typing import Self

from dlas.bench.measuring import disturbance
from dlas.bench.measuring.disturbance import Disturbance, Reading, fraction
from dlas.bench.measuring.machine import Machine
from dlas.bench.measuring.observers.observer import Observer, Slice

NAME = "processors"


class Processors(Observer):
    """Reads the kernel's counters before and after.

    Parameters
    ----------
    read : callable
        Returns the counters now.
    """

    def __init__(self, read: Callable[[], Reading]) -> None:
        self._read = read
        self._begun = Reading(0, 0, 0)

    @classmethod
    def here(cls, machine: Machine, on_gpu: bool) -> Self:
        """Return an observer; what the kernel does not count is None."""
        return cls(partial(disturbance.read, machine))

    @classmethod
    def of_children(cls, machine: Machine) -> Self:
        """Return an observer of a program in processes that this one has started."""
        return cls(partial(disturbance.read, machine, in_children=True))

    def before(self) -> None:
        """Read the counters."""
        self._begun = self._read()

    def after(self) -> dict[str, float | None]:
        """Return a :class:`~dlas.bench.measuring.disturbance.Disturbance` as a mapping."""
        return asdict(Disturbance.between(self._begun, self._read()))

    @classmethod
    def fields(cls, slices: Sequence[Slice]) -> dict[str, float | None]:
        """Return ``cpu_s`` and ``page_faults`` of a call; ``load`` and ``steal``, fractions of all time."""
        seen = [_disturbance(piece) for piece in slices]
        calls = sum(piece.calls * len(piece.samples) for piece in slices)
        capacities = [each.capacity_s for each in seen]
        return {
            "cpu_s": _of_a_call([each.own_s for each in seen], calls),
            "page_faults": _of_a_call([each.page_faults for each in seen], calls),
            "load": fraction([each.others_s for each in seen], capacities),
            "steal": fraction([each.steal_s for each in seen], capacities),
        }

    @classmethod
    def disturbances(cls, piece: Slice, slices: Sequence[Slice]) -> Mapping[str, float]:
        """Return ``load``, ``steal`` and ``wait``, where known and significant."""
        return _disturbance(piece).shares()


def _disturbance(piece: Slice) -> Disturbance:
    return Disturbance(**piece.seen[NAME])


def _of_a_call(amounts: Sequence[float | None], calls: int) -> float | None:
    """Return the mean of a call; None where an amount is not known."""
    known = [amount for amount in amounts if amount is not None]
    return sum(known) / calls if calls and len(known) == len(amounts) else None
