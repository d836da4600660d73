"""``experiments/two-runs``."""

from __future__ import annotations

import functools
import math
from collections.abc import Mapping
from itertools import combinations
from statistics import fmean, median

from benchmarks.recomputed.kept import EXPERIMENTS
from benchmarks.recomputed.markdown import Value
from benchmarks.two_runs import RULES, can_be_slowed, counts
from dlas.analysis.against.changes import SLOWER, Changes, changes_of
from dlas.analysis.against.pairs import Pair, pairs_of

RUNS = ("a", "b", "c", "d")
"""Runs of the same code."""


@functools.cache
def _pairs(before: str, now: str) -> list[Pair]:
    rows = EXPERIMENTS / "two-runs" / "rows"
    return pairs_of(rows / now, rows / before)


@functools.cache
def _changes(before: str, now: str) -> Changes:
    return changes_of(_pairs(before, now))


def unchanged(cells: Mapping[str, str]) -> dict[str, Value]:
    """Return how many points each rule calls changed between two runs of the same code."""
    before, now = cells["runs"].split(" to ")
    pairs, noise = _pairs(before, now), _changes(before, now).noise
    assert noise is not None
    found: dict[str, Value] = {name: float(len(rule(pairs))) for name, rule in RULES.items()}
    return {**found, "runs differ by": math.sqrt(noise.between)}


def called_of_unchanged() -> float:
    """Return the share of points that are called changed between two runs of the same code."""
    every = [_pairs(*pair) for pair in combinations(RUNS, 2)]
    return sum(len(RULES["dlas"](pairs)) for pairs in every) / sum(map(len, every))


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
    """Return by how much slower the slowed points were in the middle, as a share."""
    return median(
        each.ratio[0] - 1
        for before in RUNS
        for each in _changes(before, now).points
        if can_be_slowed(each.pair.row) and not math.isnan(each.ratio[0])
    )


def least_found(share: str) -> float:
    """Return the least number of slowed points that one comparison finds."""
    every = [_pairs(run, f"slow{share}") for run in RUNS]
    return float(min(counts(pairs, RULES["dlas"](pairs))[0] for pairs in every))


def detectable(share: str) -> float:
    """Return the smallest slowdown, as a share, that is found in half of the points with 95 % power."""
    return median(median(_tested(run, f"slow{share}", "detectable")) for run in RUNS)


def findable(share: str) -> float:
    """Return the share of points in which 5 % are found with 95 % power, over the four runs before."""
    return fmean(fmean(each <= 1 for each in _tested(run, f"slow{share}", "samples")) for run in RUNS)


def samples(share: str) -> float:
    """Return how many times as many samples tell 5 % in half of the points, over the four runs before."""
    return median(median(_tested(run, f"slow{share}", "samples")) for run in RUNS)


def layer_named(share: str) -> float:
    """Return the share of slowed points that were found whose first layer is one that was slowed."""
    found = [
        each.layers[0][0] in {layer["name"] for layer in each.pair.row.layers if "decisions" in layer}
        for run in RUNS
        for each in _changes(run, f"slow{share}").points
        if each.outcome == SLOWER and can_be_slowed(each.pair.row) and each.layers
    ]
    return fmean(found)


def _tested(before: str, now: str, name: str) -> list[float]:
    found = [float(getattr(each, name)) for each in _changes(before, now).points]
    return [each for each in found if not math.isnan(each)]
