"""Take reliable latency samples, and mark the ones that were disturbed.

A measurement consists of a first run, timed separately, a warm-up that is dropped,
and samples taken in slices.  The time allowed is that of the slices: a program that
compiles in its first run has as many samples as any other.  Between slices the other
programs of the comparison have their turns, so that slow changes of the machine affect
all alike.  A disturbed slice is measured again a few times, then marked as noisy.
Where slices differ so much that the times are no result, the measurement is unstable.
"""

from __future__ import annotations

import gc
import math
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from typing import Any

from dlas.bench.measuring import disturbance
from dlas.bench.measuring.observers.observer import Slice
from dlas.bench.measuring.observers.watch import Watch, Watching, disturbances
from dlas.bench.measuring.power import measure_power
from dlas.bench.measuring.taken import Taken, Turn
from dlas.stack import MeasureSettings

WARM_UP_S = 0.15
"""Warm-up before the first slice: enough for clocks to rise and threads to spread over the cores."""
WARM_UP_CALLS = 2
"""Fewest calls of that warm-up: a runtime may compile in its second run too."""
SETTLED = 1.5
"""A call shorter than the one before by more than this factor shows that the program was not warm yet."""
REWARM_S = 0.05
"""Warm-up before every later slice: other programs have used the caches since."""
LONG_CALL_S = 1.0
"""A call this long needs no warm-up: its cold start has no weight."""
RETRIES = 3
"""How often a disturbed slice is measured again."""
PAUSE_S = 0.1
"""Wait before measuring again, doubled each time: most disturbances pass."""
UNBROKEN_S = 0.5
"""Calls of a loop that the device is asked for at once: on a board, it stands still in between."""


@dataclass(frozen=True)
class Instruments:
    """Clock, sleep and observers of a measurement: what a board or a test has of its own."""

    clock: Callable[[], float] = time.perf_counter
    sleep: Callable[[float], None] = time.sleep
    watch: Watching = field(default_factory=Watch.here)


def sample(
    run: Callable[[], Any],
    settings: MeasureSettings,
    turn: Callable[[], None],
    instruments: Instruments | None = None,
    timer: Callable[[int], float] | None = None,
) -> dict[str, Any]:
    """Time ``run``.

    Parameters
    ----------
    run : callable
        One inference; returns when it is done.
    turn : callable
        Blocks until the device is this program's; called before each slice. A :class:`Turn` also keeps each
        slice, and has those of an earlier start, with which the measurement goes on.
    timer : callable, optional
        Returns the seconds that a number of runs take by the device's own clock.  Without it they are
        the time that ``run`` takes here; the first run always is.

    Returns
    -------
    dict
        What :meth:`Taken.fields` tells, ``bound`` (``repeats`` or ``seconds``: the limit that ended it), and
        where the settings ask for it what :func:`~dlas.bench.measuring.power.measure_power` tells.
    """
    tools = instruments or Instruments()
    kept = turn if isinstance(turn, Turn) else Turn(turn, keep=lambda taken: None)
    taken = kept.taken
    taken.own_clock = timer is not None
    measurement = _Measurement(run, settings, tools, taken, timer)
    with closing(tools.watch):
        kept()
        measurement.start()
        turns = max(1, min(settings.slices, settings.repeats))
        earlier = len(taken.chosen)
        for index in range(earlier, turns):
            if index > earlier:
                kept()
            measurement.take(turns - index)
            kept.keep(taken)
        power = {}
        if settings.power:
            kept()
            power = measure_power(measurement.loop, tools.sleep, tools.watch, taken.slices)
    bound = "repeats" if taken.samples >= settings.repeats else "seconds"
    return {**taken.fields(), **power, "bound": bound}


@dataclass
class _Measurement:
    """The running measurement of one program.

    ``quickest_s`` is the shortest call so far, ``calls`` those in a sample.
    """

    run: Callable[[], Any]
    settings: MeasureSettings
    tools: Instruments
    taken: Taken
    timer: Callable[[int], float] | None = None
    calls: int = 1
    quickest_s: float = math.inf

    def start(self) -> None:
        """Run for the first time, warm up and choose the number of calls in a sample.

        All samples are of as many calls, those of an earlier start too.
        """
        first = self._here(1)
        # The first run loads, allocates and compiles: later calls are faster.
        self.quickest_s = math.inf
        self._warm_up(first)
        shortest = max(self.quickest_s, 1e-9)
        self.calls = max(1, math.ceil(self.settings.sample_seconds / shortest))
        if self.taken.attempts:
            self.calls = self.taken.attempts[0].calls
        else:
            self.taken.first_run_s = first

    def _warm_up(self, last_s: float) -> None:
        """Run untimed until the program is warm; ``last_s`` are the seconds of the call before."""
        start, calls, settled = self.tools.clock(), 0, False
        while not settled or calls < WARM_UP_CALLS or self.tools.clock() - start < WARM_UP_S:
            before_s, last_s = last_s, self._call()
            settled = before_s <= SETTLED * last_s
            calls += 1

    def take(self, turns_left: int) -> None:
        """Take this turn's slice, the least disturbed of a few attempts."""
        scored: list[tuple[float, int]] = []
        for attempt in range(RETRIES + 1):
            if attempt:
                self.taken.retries_left -= 1
                self.tools.sleep(PAUSE_S * 2 ** (attempt - 1))
            with self._active():
                piece = self._slice(turns_left)
            attempts = self.taken.attempts
            attempts.append(piece)
            scored.append((disturbance.worst(disturbances(piece, attempts))[0], len(attempts) - 1))
            if scored[-1][0] <= 1 or not self._may_repeat(turns_left):
                break
        _, best = min(scored, key=lambda each: each[0])
        self.taken.chosen.append(best)

    def loop(self, seconds: float) -> None:
        """Run untimed for at least ``seconds``, without a pause."""
        calls = max(1, math.ceil(UNBROKEN_S / max(self.quickest_s, 1e-9)))
        start = self.tools.clock()
        while self.tools.clock() - start < seconds:
            self._seconds(calls)

    def _may_repeat(self, turns_left: int) -> bool:
        """Return whether the time suffices to measure a slice again and take the minimum of later samples."""
        if self.taken.retries_left == 0:
            return False
        fewest_s = self._needed(turns_left) * self.calls * self.quickest_s
        return self.taken.active_s + fewest_s * turns_left <= self.settings.seconds

    def _needed(self, turns_left: int) -> int:
        """Return the number of samples that a slice takes even beyond its time."""
        minimum = min(self.settings.minimum, self.settings.repeats)
        return max(1, math.ceil((minimum - self.taken.samples) / turns_left))

    def _slice(self, turns_left: int) -> Slice:
        """Take one slice: its share of the remaining samples, within its share of the remaining time."""
        share_s = max(0.0, self.settings.seconds - self.taken.active_s) / turns_left
        most = math.ceil(max(0, self.settings.repeats - self.taken.samples) / turns_left)
        needed = self._needed(turns_left)
        samples: list[float] = []
        clock = self.tools.clock
        start = clock()
        if self.taken.active_s < self.settings.seconds and self.quickest_s < LONG_CALL_S:
            self._warm(min(REWARM_S, share_s / 2))
        with _no_garbage_collection():
            self.tools.watch.before()
            while len(samples) < most and (len(samples) < needed or clock() - start < share_s):
                samples.append(self._sample())
            return Slice(samples, self.calls, self.tools.watch.after())

    def _warm(self, seconds: float) -> None:
        """Run untimed for ``seconds``, at least once if that is positive."""
        start = self.tools.clock()
        while self.tools.clock() - start < seconds:
            self._call()

    def _call(self) -> float:
        elapsed = self._seconds(1)
        self.quickest_s = min(self.quickest_s, elapsed)
        return elapsed

    def _sample(self) -> float:
        """Return the mean seconds of ``calls`` calls."""
        return self._seconds(self.calls) / self.calls

    def _seconds(self, calls: int) -> float:
        """Return the seconds of ``calls`` calls by the clock of the device."""
        return self._here(calls) if self.timer is None else self.timer(calls)

    def _here(self, calls: int) -> float:
        """Return the seconds of ``calls`` calls by the clock of this process."""
        run = self.run
        start = self.tools.clock()
        for _ in range(calls):
            run()
        return self.tools.clock() - start

    @contextmanager
    def _active(self) -> Iterator[None]:
        start = self.tools.clock()
        try:
            yield
        finally:
            self.taken.active_s += self.tools.clock() - start


@contextmanager
def _no_garbage_collection() -> Iterator[None]:
    """Keep Python's garbage collector from running during a sample."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()
