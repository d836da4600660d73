"""Clocks of what is shown: when a line is due, and how long work and training still take."""

from __future__ import annotations

import re
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field

from dlas.sweep.rows.labels import duration

QUIET_S = 2.0
MOST_QUIET_S = 60.0
STEADY = 1.5
"""Two estimates of the time that all steps take agree if neither is more than so many times the other."""
EPOCH = re.compile(r"\bepoch (\d+) of (\d+)\b")
"""What training says after each epoch."""


@dataclass
class QuietClock:
    """Tells when a line on what is done is due: after two seconds of quiet, then ever more rarely."""

    now: Callable[[], float] = time.monotonic
    """Returns seconds since any moment."""
    _wait_s: float = QUIET_S
    _spoke_s: float = field(init=False)

    def __post_init__(self) -> None:
        self.spoke()

    def spoke(self) -> None:
        """Note that a line was printed."""
        self._spoke_s = self.now()

    def due(self) -> bool:
        """Return whether a line is due, which the caller then prints."""
        if self.now() - self._spoke_s < self._wait_s:
            return False
        self.spoke()
        self._wait_s = min(2 * self._wait_s, MOST_QUIET_S)
        return True


@dataclass
class RemainingTime:
    """Estimates how long steps still take, once that means something.

    It does when the time of all steps, as estimated now, agrees with what was estimated at half the time.
    """

    _totals: deque[tuple[float, float]] = field(default_factory=deque)
    """Seconds since the start, and those that all steps were then estimated to take."""

    def left_s(self, elapsed_s: float, done: int, steps: int) -> float | None:
        """Return the seconds that are left, or None while nobody can tell.

        Parameters
        ----------
        elapsed_s : float
            Seconds since the start.
        done, steps : int
            Number of steps that are done, and of all.
        """
        if done == 0 or elapsed_s <= 0:
            return None
        total = elapsed_s * steps / done
        if not self._totals or elapsed_s > 1.01 * self._totals[-1][0]:  # a few hundred, however long it takes
            self._totals.append((elapsed_s, total))
        while len(self._totals) > 1 and self._totals[1][0] <= elapsed_s / 2:
            self._totals.popleft()
        then_s, before = self._totals[0]
        if then_s > elapsed_s / 2 or max(total, before) > STEADY * min(total, before):
            return None
        return total - elapsed_s


@dataclass
class EpochTimer:
    """Tells how long training still takes, from when its epochs ended."""

    _first: tuple[int, float] | None = None
    """The first epoch of a training that was seen to end, and when."""

    def left(self, text: str, now: float) -> str:
        """Return ", about 2 min left" for a message such as "epoch 3 of 15, ..."; empty for any other.

        Empty as well for the first epoch, whose beginning is not known: training may have been resumed.
        """
        found = EPOCH.search(text)
        if found is None:
            return ""
        epoch, epochs = int(found[1]), int(found[2])
        if self._first is None or epoch <= self._first[0]:  # another training has begun
            self._first = epoch, now
            return ""
        first, since = self._first
        if epoch == epochs:
            return ""
        return f", about {duration(round((now - since) / (epoch - first) * (epochs - epoch)))} left"
