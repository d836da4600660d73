"""What became of clocks that were asked for."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from dlas.bench.clocks.domain import ClockDomain
from dlas.bench.clocks.request import HONOURED
from dlas.stack import ClockReading

LOOKS_S = 0.01
"""How often a clock is read until it is the one asked for."""


@dataclass(frozen=True)
class AppliedClock:
    """What was asked for, what the kernel has set, and what ran, in Hz.

    Of several controllers, the one farthest from what was asked for; None where nothing tells it.
    """

    requested_hz: float
    applied_hz: float | None
    observed_hz: float | None

    @property
    def off(self) -> float:
        """By what share what is known differs most from what was asked for."""
        known = [hz for hz in (self.applied_hz, self.observed_hz) if hz is not None]
        return max((abs(hz / self.requested_hz - 1) for hz in known), default=0.0)

    @property
    def honoured(self) -> bool:
        """Whether nothing that is known differs from what was asked for by more than 2 %."""
        return self.reason is None

    @property
    def reason(self) -> str | None:
        """What differs; None where nothing does."""
        for what, hz in (("set to", self.applied_hz), ("running at", self.observed_hz)):
            if hz is not None and abs(hz / self.requested_hz - 1) > HONOURED:
                return f"{what} {hz:.10g} Hz instead of {self.requested_hz:.10g}"
        return None

    def content(self) -> ClockReading:
        """Return it as a row has it."""
        return {
            "requested_hz": self.requested_hz,
            "applied_hz": self.applied_hz,
            "observed_hz": self.observed_hz,
        }


@dataclass
class HeldClocks:
    """Clocks that are held at what was asked for."""

    requested_hz: Mapping[str, float]
    domains: Mapping[str, ClockDomain]
    told: list[str] = field(default_factory=list)
    """After the end, what could not be put back, and what was left because somebody else changed it."""

    def read(self) -> dict[str, AppliedClock]:
        """Return what the clocks are now, by domain: some run as set only while there is work."""
        return {name: _read(self.domains[name], hz) for name, hz in self.requested_hz.items()}

    def contents(self) -> dict[str, ClockReading]:
        """Return what :meth:`read` tells, as a row has it."""
        return {name: clock.content() for name, clock in self.read().items()}

    def settle(self, seconds: float, sleep: Callable[[float], None] = time.sleep) -> None:
        """Wait until all are honoured, or for so many seconds."""
        until = time.monotonic() + seconds
        while time.monotonic() < until and not all(clock.honoured for clock in self.read().values()):
            sleep(LOOKS_S)


def _read(domain: ClockDomain, hz: float) -> AppliedClock:
    return AppliedClock(hz, _farthest(domain.applied_hz(), hz), _farthest(domain.observed_hz(), hz))


def _farthest(clocks: Sequence[float], hz: float) -> float | None:
    return max(clocks, key=lambda clock: abs(clock - hz), default=None)
