"""``experiments/two-runs``."""

from __future__ import annotations

import functools
import math
from collections.abc import Mapping
from itertools import combinations
from statistics import fmean, median

from benchmarks.recomputed.kept import EXPERIMENTS, slow
from benchmarks.recomputed.markdown import Value
from benchmarks.two_runs import RULES, can_be_slowed, counts
from dlas.analysis.against.changes import Changes, changes_of
from dlas.analysis.against.noise import MEDIANS, SENTINELS, SHORTEST, noise_of, spread_of
from dlas.analysis.against.pairs import Pair, pairs_of

RUNS = ("a", "b", "c", "d")
"""Runs of the same code."""
WAYS = (MEDIANS, SENTINELS, SHORTEST)
"""Ways to tell a point's time."""


@functools.cache
def _pairs(before: str, now: str) -> list[Pair]:
    study = EXPERIMENTS / "two-runs"
    return pairs_of(study / now, study / before)


def _timed(before: str, now: str) -> list[Pair]:
    return [pair for pair in _pairs(before, now) if pair.timed]


@functools.cache
def _changes(before: str, now: str) -> Changes:
    return changes_of(_pairs(before, now))


@slow
def unchanged(cells: Mapping[str, str]) -> dict[str, Value]:
    """Return how many points each rule calls changed between two runs of the same code."""
    before, now = cells["runs"].split(" to ")
    pairs = _pairs(before, now)
    found: dict[str, Value] = {name: float(len(rule(pairs))) for name, rule in RULES.items()}
    return {
        **found,
        **{f"by {way}": 100 * spread_of(noise_of(_timed(before, now), by=way).ratios) for way in WAYS},
    }


@slow
def called_of_unchanged() -> float:
    """Return the percentage of points that are called changed between two runs of the same code."""
    every = [_pairs(*pair) for pair in combinations(RUNS, 2)]
    return 100 * sum(len(RULES["dlas"](pairs)) for pairs in every) / sum(map(len, every))


@slow
def differ_by(way: str) -> float:
    """Return how many percent unchanged points differ by between two runs, as one way tells their times."""
    told = [noise_of(_timed(*pair), by=way) for pair in combinations(RUNS, 2)]
    return 100 * median(spread_of(noise.ratios) for noise in told)


@slow
def slowed(cells: Mapping[str, str]) -> dict[str, Value]:
    """Return how many slowed points each rule finds, the mean over the runs before, and how many others."""
    now = f"slow{cells['slowed by'].removesuffix(' %')}"
    found: dict[str, Value] = {}
    for name, rule in RULES.items():
        told = [counts(pairs, rule(pairs)) for pairs in (_pairs(before, now) for before in RUNS)]
        found[name] = fmean(right for right, _ in told)
        found[f"{name}: others"] = fmean(wrong for _, wrong in told)
    return {**found, "measured": _measured(now)}


def _measured(now: str) -> float:
    """Return how many percent slower the slowed points were in the middle."""
    return 100 * median(
        each.ratio[0] - 1
        for before in RUNS
        for each in _changes(before, now).points
        if can_be_slowed(each.pair.row) and not math.isnan(each.ratio[0])
    )
