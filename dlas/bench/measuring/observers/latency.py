"""Latency: the samples themselves."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Self

from dlas.bench.measuring.disturbance import spread
from dlas.bench.measuring.machine import Machine
from dlas.bench.measuring.observers.observer import Observer, Slice


class Latency(Observer):
    """Needs nothing of the machine: whoever takes the samples has them."""

    @classmethod
    def here(cls, machine: Machine, on_gpu: bool) -> Self:
        """Return an observer."""
        return cls()

    def before(self) -> None:
        """Do nothing."""

    def after(self) -> None:
        """Do nothing."""

    @classmethod
    def fields(cls, slices: Sequence[Slice]) -> dict[str, Any]:
        """Return ``latency_s`` (samples, seconds a call) and ``calls_per_sample``."""
        samples = [seconds for piece in slices for seconds in piece.samples]
        return {"latency_s": samples, "calls_per_sample": slices[0].calls}

    @classmethod
    def disturbances(cls, piece: Slice, slices: Sequence[Slice]) -> Mapping[str, float]:
        """Return the samples' ``spread``, where there are enough."""
        found = spread(piece.samples)
        return {} if found is None else {"spread": found}
