"""``experiments/two-runs``."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from itertools import combinations
from statistics import median

from benchmarks.recomputed.kept import EXPERIMENTS, slow
from benchmarks.recomputed.markdown import Value
from benchmarks.two_runs import RULES, can_be_slowed, counts
from dlas.analysis.against.changes import Changes, changes_of
from dlas.analysis.against.noise import MEDIANS, SENTINELS, SHORTEST, noise_of, spread_of
from dlas.analysis.against.pairs import Pair, pairs_of

RUNS = {"alone": ("a", "b"), "busy": ("busy-a", "busy-b", "busy-c", "busy-d")}
"""Runs of the same code, by what else the processor did."""
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
def called_of_unchanged(beside: str) -> float:
    """Return the percentage of points that are called changed between two runs of the same code."""
    every = [_pairs(*pair) for pair in combinations(RUNS[beside], 2)]
    return 100 * sum(len(RULES["dlas"](pairs)) for pairs in every) / sum(map(len, every))


@slow
def differ_by(way: str, beside: str) -> float:
    """Return how many percent unchanged points differ by between two runs, as one way tells their times."""
    told = [noise_of(_timed(*pair), by=way) for pair in combinations(RUNS[beside], 2)]
    return 100 * median(spread_of(noise.ratios) for noise in told)


@slow
def depthwise_differ(before: str, now: str) -> float:
    """Return by how many percent depthwise 5x5 layers by `hand` differ, without the machine's shift."""
    points = _changes(before, now).points
    own = [
        each.ratio[0]
        for each in points
        if "dw5x5" in each.pair.row.model.get("layers", "") and _ours(each.pair)
    ]
    return 100 * abs(median(own) - 1)


def _ours(pair: Pair) -> bool:
    return str(pair.row.compiler["name"]) == "hand"


@slow
def depthwise_differ_at_most() -> float:
    """Return the largest of these between the runs of the same code at fixed addresses."""
    return max(depthwise_differ(*pair) for pair in combinations(RUNS["busy"], 2))


@slow
def slowed(cells: Mapping[str, str]) -> dict[str, Value]:
    """Return how many slowed points each rule finds, and how many others it calls changed."""
    before, now = cells["runs"].split(" to ")
    pairs = _pairs(before, now)
    found: dict[str, Value] = {}
    for name, rule in RULES.items():
        right, wrong = counts(pairs, rule(pairs))
        found |= {name: float(right), f"{name}: others": float(wrong)}
    return {**found, "measured": _measured(before, now)}


def _measured(before: str, now: str) -> float:
    """Return how many percent slower the slowed points were in the middle."""
    points = _changes(before, now).points
    return 100 * median(
        each.ratio[0] - 1 for each in points if can_be_slowed(each.pair.row) and each.pair.timed
    )
