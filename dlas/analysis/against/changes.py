"""What became slower, faster, failed, fixed, appeared and went between two runs of a study."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd
from scipy import stats

from dlas.analysis.against.noise import RunNoise, noise_of
from dlas.analysis.against.pairs import Pair, causes, ids_of, pairs_of
from dlas.errors import InputError
from dlas.stack import PART_AXES
from dlas.sweep.rows import intervals
from dlas.sweep.rows.files import Folders, paths_of
from dlas.sweep.rows.labels import label
from dlas.sweep.rows.results import COMPLETED, UNSTABLE, Row

SLOWER, FASTER, SAME, UNCLEAR = ("slower", "faster", "same", "unclear")
FAILED, FIXED, APPEARED, GONE = ("failed", "fixed", "appeared", "gone")
MORE, FEWER = ("more instructions", "fewer instructions")
OTHER_MACHINE, NO_TIME = ("other machine", "no time")
CHANGED = (SLOWER, MORE, FASTER, FEWER)
OUTCOMES = (*CHANGED, FAILED, FIXED, APPEARED, GONE, OTHER_MACHINE, UNSTABLE, NO_TIME, UNCLEAR, SAME)
"""Those that a reader looks for come first."""
UNTOLD = (OTHER_MACHINE, UNSTABLE, NO_TIME, UNCLEAR)
"""Outcomes of points whose clocks do not tell whether they changed: there counts decide, where both rows have
some of one counter.
"""
COUNTED = {"callgrind": 0.002, "perf_event_open": 0.02}
"""By counter, the relative difference of instructions that is one: threads that wait for others spin."""
KERNEL_COUNTED = 0.005
"""The relative difference of a kernel's instructions that is one: that of the whole may be too small."""
FALSE_DISCOVERIES = 0.05
"""Share of points called slower or faster that may be neither, on average."""
TOLERANCE = 0.05
"""A point whose whole interval is nearer to 1 is the same; one that is not, and is not called changed, is
unclear.
"""
QUANTITIES = {
    "accuracy": 0.0005,
    "peak_memory_bytes": 0.02,
    "model_bytes": 0.001,
    "packed_bytes": 0.001,
    "library_bytes": 0.01,
}
"""Other columns that are compared, with the relative difference that is worth a word."""


@dataclass(frozen=True)
class Change:
    """A point in two runs."""

    pair: Pair
    outcome: str
    """One of :data:`OUTCOMES`."""
    causes: tuple[str, ...]
    """What differs between its rows."""
    ratio: tuple[float, float, float] = (np.nan, np.nan, np.nan)
    """Time now over time before with its interval of 95 %, without the shift of the whole machine."""
    p: float = np.nan
    """How likely so large a ratio is where nothing changed."""
    q: float = np.nan
    """The share of points as sure as this one that are expected not to have changed."""
    detectable: float = np.nan
    """The smallest slowdown that is found with 95 % power, as a share."""
    samples: float = np.nan
    """How many times as many samples find a slowdown of :data:`TOLERANCE` with 95 % power; infinite where
    runs of an unchanged point differ too much.
    """

    @property
    def layers(self) -> list[tuple[str, float]]:
        """Layers by how many seconds they took longer, those that explain the change first."""
        return changed_layers(self.pair)

    @property
    def kernels(self) -> list[tuple[str, float]]:
        """Kernels by how many instructions more they have, those that explain the change first."""
        return _longer(*(row.kernel_instructions if row else {} for row in (self.pair.before, self.pair.now)))

    @property
    def instructions(self) -> float:
        """Instructions now over before, NaN where one row has none, or another counter's."""
        return _instructions(self.pair)


@dataclass(frozen=True)
class Changes:
    """Two runs against each other."""

    points: list[Change]
    """In the order of :data:`OUTCOMES`, the largest changes first."""
    noise: RunNoise | None
    """None where no point was timed in both on one machine."""
    quantities: dict[str, list[tuple[Pair, float]]]
    """By column, the points in which it differs, with the relative difference."""
    runs: tuple[str, str] = ("before", "now")
    """What the runs are called: the folders of the earlier and of the later one."""

    def count(self, outcome: str) -> int:
        """Return how many points have an outcome."""
        return sum(change.outcome == outcome for change in self.points)

    def slower_by(self, share: float) -> list[Change]:
        """Return the points that are surely slower, or have more instructions, by at least some share."""
        return [
            each
            for each in self.points
            if (each.outcome == SLOWER and each.ratio[0] >= 1 + share)
            or (each.outcome == MORE and each.instructions >= 1 + share)
        ]

    def frame(self) -> pd.DataFrame:
        """Return one line a point."""
        return pd.DataFrame([_line(change) for change in self.points])


def changes_between(now: Folders | pd.DataFrame, before: Folders, where: Sequence[str] = ()) -> Changes:
    """Return what changed between two runs.

    Parameters
    ----------
    now, before : path or paths
        As for :func:`dlas.analysis.against.pairs.pairs_of`.
    where : sequence of str
        Filters that a point's row in either run matches.

    Raises
    ------
    InputError
        As :func:`dlas.analysis.against.pairs.pairs_of`, or if a filter is malformed or keeps no row.
    """
    if isinstance(now, pd.DataFrame):
        raise InputError("`against=` compares folders, and a frame lacks what a row says: give the folders")
    ids = ids_of([*paths_of(now), *paths_of(before)], where)
    old, new = (", ".join(map(str, paths_of(folders))) for folders in (before, now))
    return replace(changes_of(pairs_of(now, before, ids)), runs=(old, new))


def changes_of(pairs: Sequence[Pair]) -> Changes:
    """Return what changed between two runs."""
    tested = [pair for pair in pairs if pair.timed and pair.one_machine]
    noise = noise_of(tested) if tested else None
    found = _tested(tested, noise) if noise else []
    found += [
        Change(pair, _untested(pair), causes(pair)) for pair in pairs if not (pair.timed and pair.one_machine)
    ]
    found = [replace(each, outcome=_counted(each)) if each.outcome in UNTOLD else each for each in found]
    found.sort(key=lambda each: (OUTCOMES.index(each.outcome), -abs(np.log(each.ratio[0] or 1))))
    return Changes(found, noise, _quantities(pairs))


def _tested(pairs: Sequence[Pair], noise: RunNoise) -> list[Change]:
    """Return the changes of points with two times, families of tests controlled."""
    p = noise.p_values()
    q = stats.false_discovery_control(p)
    ratios = noise.intervals()
    called = q <= FALSE_DISCOVERIES
    # What a test must reach where as many are called as here.
    significance = FALSE_DISCOVERIES * max(1, int(called.sum())) / len(pairs)
    detectable = noise.detectable(significance)
    samples = noise.samples_for(TOLERANCE, significance)
    return [
        Change(
            pair,
            _outcome(bool(called[at]), tuple(ratios[at])),
            causes(pair),
            tuple(ratios[at].tolist()),
            float(p[at]),
            float(q[at]),
            float(detectable[at]),
            float(samples[at]),
        )
        for at, pair in enumerate(pairs)
    ]


def _outcome(called: bool, ratio: tuple[float, float, float]) -> str:
    middle, low, high = ratio
    if called:
        return SLOWER if middle > 1 else FASTER
    return SAME if low >= 1 - TOLERANCE and high <= 1 + TOLERANCE else UNCLEAR


def _untested(pair: Pair) -> str:
    before, now = pair.before, pair.now
    if before is None:
        return APPEARED
    if now is None:
        return GONE
    ended = before.status in COMPLETED, now.status in COMPLETED
    if ended == (True, False):
        return FAILED
    if ended == (False, True):
        return FIXED
    if UNSTABLE in (before.status, now.status):
        return UNSTABLE
    return OTHER_MACHINE if pair.timed else NO_TIME


def _counted(change: Change) -> str:
    """Return the outcome by instructions where both rows have them, and else as it is."""
    counter, ratio = _counter(change.pair), change.instructions
    if counter is None or change.pair.before is None or np.isnan(ratio):
        return change.outcome
    before = change.pair.before.kernel_instructions
    kernels = any(abs(more) > KERNEL_COUNTED * before[name] for name, more in change.kernels)
    if not kernels and abs(ratio - 1) <= COUNTED.get(counter.partition(",")[0], 0.0):
        return change.outcome
    return MORE if ratio > 1 else FEWER


def _counter(pair: Pair) -> str | None:
    """Return what counted the instructions of both rows; None where they differ in that."""
    counters = {row.counter if row else None for row in (pair.before, pair.now)}
    return counters.pop() if len(counters) == 1 else None


def _instructions(pair: Pair) -> float:
    before, now = (row.instructions if row else None for row in (pair.before, pair.now))
    return now / before if _counter(pair) and before and now is not None else np.nan


def _quantities(pairs: Sequence[Pair]) -> dict[str, list[tuple[Pair, float]]]:
    """Return the relative differences of other quantities that are worth a word, the largest first."""
    found: dict[str, list[tuple[Pair, float]]] = {}
    for column, least in QUANTITIES.items():
        for pair in pairs:
            before, now = (getattr(row, column, None) for row in (pair.before, pair.now))
            if before and now is not None and abs(now / before - 1) > least:
                found.setdefault(column, []).append((pair, now / before - 1))
    return {name: sorted(every, key=lambda each: -abs(each[1])) for name, every in found.items()}


def changed_layers(pair: Pair) -> list[tuple[str, float]]:
    """Return the layers that both rows of a point have times of, by how many seconds longer they take now."""
    if pair.before is None or pair.now is None:
        return []
    return _longer(_layer_times(pair.before), _layer_times(pair.now))


def _longer(before: Mapping[str, float], now: Mapping[str, float]) -> list[tuple[str, float]]:
    """Return by how much each name has more now, of those that both have, the largest difference first."""
    shared = ((name, now[name] - before[name]) for name in now if name in before)
    return sorted(shared, key=lambda each: -abs(each[1]))


def _layer_times(row: Row) -> dict[str, float]:
    """Return the seconds of a row's layers by name; those that share a name together."""
    found: dict[str, float] = {}
    for layer in row.layers:
        if (seconds := layer.get("latency_s")) is not None:
            found[layer["name"]] = found.get(layer["name"], 0.0) + seconds
    return found


def point_of(row: Row) -> dict[str, object]:
    """Return the id of a row's point and what it has on every axis, as labels."""
    content = vars(row)
    parts = {axis: label(content[axis]) for axis in PART_AXES}
    return {"id": row.id, **parts, **{name: content[name] for name in ("batch", "task", "seed")}}


def _line(change: Change) -> dict[str, object]:
    before, now = change.pair.before, change.pair.now
    times = [
        intervals.median(each.latency_s)[0] if each and each.latency_s else np.nan for each in (before, now)
    ]
    return {
        **point_of(change.pair.row),
        "outcome": change.outcome,
        "status_before": before.status if before else None,
        "status": now.status if now else None,
        "latency_before_s": times[0],
        "latency_s": times[1],
        "instructions": change.instructions,
        **dict(zip(("ratio", "ratio_low", "ratio_high"), change.ratio, strict=True)),
        "p": change.p,
        "q": change.q,
        "detectable": change.detectable,
        "samples": change.samples,
        "causes": "; ".join(change.causes),
    }
