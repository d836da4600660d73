"""The interface of observers: what is watched while samples are taken."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self

from dlas.bench.measuring.machine import Machine


@dataclass(frozen=True)
class Slice:
    """The samples of one turn, and what observers saw meanwhile."""

    samples: list[float]
    """Seconds a call."""
    calls: int
    """Calls in a sample."""
    seen: Mapping[str, Any]
    """What each observer's :meth:`Observer.after` returned, by the observer's name. A name is missing where
    the machine has nothing of this kind to watch.
    """


class Observer(ABC):
    """Watches one thing while the samples of a slice are taken, slice after slice.

    An object of this class lives on the machine that the program runs on: in the process that
    takes the samples, and for a board in its session's process there.  What it saw crosses as JSON
    to the machine that asks, where the class's own functions make fields of a row from it.
    """

    every_s: float | None = None
    """How often :meth:`during` is called, in seconds; None for never."""

    @classmethod
    @abstractmethod
    def here(cls, machine: Machine, on_gpu: bool) -> Self | None:
        """Return an observer of this machine, None where it has nothing to watch.

        Parameters
        ----------
        on_gpu : bool
            Whether the program runs on the machine's GPU.
        """

    @abstractmethod
    def before(self) -> None:
        """Begin, shortly before a slice's first sample."""

    def during(self) -> None:
        """Look, in a thread of its own while samples are timed: it must take little time."""
        raise NotImplementedError(f"{type(self).__name__} has every_s and does not say what to do then")

    @abstractmethod
    def after(self) -> Any:
        """End, shortly after the slice's last sample, and return what was seen, as JSON knows it."""

    @classmethod
    @abstractmethod
    def fields(cls, slices: Sequence[Slice]) -> dict[str, Any]:
        """Return fields of a row, null where nothing was seen."""

    @classmethod
    def disturbances(cls, piece: Slice, slices: Sequence[Slice]) -> Mapping[str, float]:
        """Return how disturbed a slice was, beside others of its measurement.

        Returns
        -------
        mapping of str to float
            Some of the keys of :data:`dlas.bench.measuring.disturbance.LIMITS`, as fractions.
        """
        return {}
