"""Disturbances of a measurement: other processes, a stolen processor, changing clocks."""

from __future__ import annotations

import resource
import statistics
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from dlas.bench.measuring.machine import Machine

LIMITS = {
    # Shares of the processors that the process may use.
    "load": 0.10,
    "steal": 0.05,
    # Share of the process's own thread time spent ready to run without a processor: also detects that
    # two of its threads share a core, which the time of other processes does not show.
    "wait": 0.05,
    # How much slower the sentinel was than its fastest run so far.
    "drift": 0.10,
    # Interquartile range over median, of one slice's samples.
    "spread": 0.20,
}
"""A slice above one of these is noisy: each is several times the value of an idle machine."""
UNSTABLE = {"medians": 2.0, "sentinel": 1.3}
"""From these factors between the slices of a measurement on, its times are no result."""
MEANING = {
    "load": "other processes used {:.0%} of the processors",
    "steal": "the hypervisor took {:.0%} of the processors",
    "wait": "threads waited {:.0%} of their time for a processor",
    "drift": "the sentinel ran {:.0%} slower than at its best",
    "spread": "samples spread over {:.0%} of their median",
}
TICKS_S = 0.03
"""/proc/stat counts in ticks of 10 ms, by processor: fewer than three ticks are no evidence."""


@dataclass(frozen=True)
class Reading:
    """Counters at one moment."""

    clock_s: float
    processors: int
    """Logical processors that this process may use."""
    own_s: float
    """Processor time of this process."""
    busy_s: float | None = None
    steal_s: float | None = None
    """Busy time of all processes on those processors, and time that the hypervisor took from them; None where
    the kernel does not count it.
    """
    waited: Mapping[str, float] = field(default_factory=dict)
    """By thread of this process, the time that it was ready to run without a processor."""
    page_faults: int | None = None
    """Of this process, those that read nothing from a disk; None where its children compute."""


def read(machine: Machine | None = None, in_children: bool = False) -> Reading:
    """Return the current counters.

    Parameters
    ----------
    in_children : bool, optional
        Whether the time of processes that this one has started is its own.
    """
    machine = machine or Machine()
    allowed = machine.allowed()
    usage = machine.usage(allowed)
    return Reading(
        clock_s=time.perf_counter(),
        processors=len(allowed),
        own_s=time.process_time() + (machine.children_s() if in_children else 0.0),
        busy_s=usage.busy_s if usage else None,
        steal_s=usage.steal_s if usage else None,
        waited=machine.waited(),
        page_faults=None if in_children else resource.getrusage(resource.RUSAGE_SELF).ru_minflt,
    )


@dataclass(frozen=True)
class Disturbance:
    """The difference of two readings; times are of processors."""

    capacity_s: float
    """Processors times elapsed time."""
    own_s: float
    others_s: float | None
    steal_s: float | None
    wait_s: float | None
    """None where the kernel does not count it."""
    page_faults: float | None = None

    @classmethod
    def between(cls, before: Reading, after: Reading) -> Disturbance:
        """Return the difference of two readings."""
        own = after.own_s - before.own_s
        # Threads that began or ended in between are left out: their counters have no difference.
        both = before.waited.keys() & after.waited.keys()
        return cls(
            capacity_s=(after.clock_s - before.clock_s) * after.processors,
            own_s=own,
            others_s=_difference(before.busy_s, after.busy_s, own),
            steal_s=_difference(before.steal_s, after.steal_s),
            wait_s=sum(after.waited[t] - before.waited[t] for t in both) if both else None,
            page_faults=_difference(before.page_faults, after.page_faults),
        )

    def shares(self) -> dict[str, float]:
        """Return ``load``, ``steal`` and ``wait`` as fractions, where known and significant."""
        shares = {}
        for name, seconds in (("load", self.others_s), ("steal", self.steal_s)):
            if seconds is not None and seconds >= TICKS_S:
                shares[name] = seconds / self.capacity_s
        if self.wait_s is not None and self.own_s > 0:
            shares["wait"] = self.wait_s / (self.own_s + self.wait_s)
        return shares


def fraction(parts: Sequence[float | None], wholes: Sequence[float]) -> float | None:
    """Return the sum of the parts over that of the wholes, None if a part is not known."""
    numbers = [part for part in parts if part is not None]
    if len(numbers) < len(parts) or sum(wholes) <= 0:
        return None
    return min(1.0, sum(numbers) / sum(wholes))


def spread(samples: Sequence[float]) -> float | None:
    """Return the interquartile range over the median; None for fewer than four samples."""
    if len(samples) < 4:
        return None
    low, middle, high = statistics.quantiles(samples, n=4)
    return (high - low) / middle if middle > 0 else None


def worst(measures: Mapping[str, float]) -> tuple[float, str]:
    """Return the worst measure over its limit (above 1 is noisy), and its message.

    Parameters
    ----------
    measures : mapping of str to float
        Some of the keys of :data:`LIMITS`, as fractions.
    """
    scores = {name: value / LIMITS[name] for name, value in measures.items()}
    name = max(scores, key=lambda key: scores[key], default=None)
    return (0.0, "") if name is None else (scores[name], MEANING[name].format(measures[name]))


def _difference(before: float | None, after: float | None, less: float = 0.0) -> float | None:
    """Return after - before - less, never negative: the two clocks differ in resolution."""
    if before is None or after is None:
        return None
    return max(0.0, after - before - less)
