"""Turns on a device whose clocks are held meanwhile, and never longer: others may ask for other clocks."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass, field
from typing import Any

from dlas.bench.clocks.applied import AppliedClock
from dlas.bench.measuring.taken import Taken, Turn
from dlas.stack import ClockReading, ReadClocks
from dlas.stack.types import Say


@dataclass
class ClocksSeen:
    """What clocks were while a program had its turns."""

    clocks: dict[str, AppliedClock] = field(default_factory=dict)
    """By name, the readings farthest from what was asked for."""
    told: list[str] = field(default_factory=list)
    """What was not put back as it had been found."""

    def add(self, read: Mapping[str, ClockReading]) -> None:
        """Add a reading."""
        for name, content in read.items():
            clock = AppliedClock(**content)
            self.clocks[name] = max(clock, self.clocks.get(name, clock), key=lambda each: each.off)

    def fields(self) -> dict[str, Any]:
        """Return the fields of a row."""
        reasons = [f"{name}: {clock.reason}" for name, clock in self.clocks.items() if clock.reason]
        return {
            "clocks": {name: clock.content() for name, clock in self.clocks.items()},
            "clocks_note": "; ".join([*reasons, *self.told]) or None,
        }

    def facts(self) -> dict[str, float]:
        """Return the clocks that ran, as facts of the device: what was observed, else what was set."""
        ran = {name: clock.observed_hz or clock.applied_hz for name, clock in self.clocks.items()}
        return {f"{name}_hz": hz for name, hz in ran.items() if hz}


@contextmanager
def held_turns(
    turn: Callable[[], None], hold: Callable[[Say], AbstractContextManager[ReadClocks]]
) -> Iterator[tuple[Turn, ClocksSeen]]:
    """Hold clocks from the moment that a turn begins until the next one is waited for, or the end.

    Parameters
    ----------
    turn : callable
        Blocks until the device is this program's.
    hold : callable
        Takes a callable that is told lines, and returns what sets clocks and restores them.

    Yields
    ------
    Turn
        In place of ``turn``.
    ClocksSeen
    """
    inner = turn if isinstance(turn, Turn) else Turn(turn, keep=lambda taken: None)
    seen = ClocksSeen()
    with ExitStack() as held:
        read: list[ReadClocks] = []

        def wait() -> None:
            held.close()
            inner()
            read[:] = [held.enter_context(hold(seen.told.append))]

        def keep(taken: Taken) -> None:
            seen.add(read[0]())
            inner.keep(taken)

        yield Turn(wait, keep, inner.taken), seen
