"""The picture of ``experiments/two-runs``: by how much points differ between two runs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from dlas.analysis.against.pairs import pairs_of
from dlas.face.reporting import charts
from dlas.face.reporting.blocks import Figure, Panel
from dlas.face.reporting.context import significant
from dlas.face.reporting.palette import HUES, NEUTRAL, rgb
from docs.building.kinds import Picture

SLOWED, UNCHANGED = "slowed on purpose", "unchanged"
COLOURS = {UNCHANGED: rgb(*NEUTRAL), SLOWED: rgb(*HUES[1])}
SHARES = (5, 25, 50, 75, 95)
"""Percentiles of a box: its lines, its ends, and its middle."""


@dataclass(frozen=True, kw_only=True)
class Differences(Picture):
    """By how many percent the times of points differ between two runs, as boxes."""

    runs: Sequence[tuple[str, str]]
    """Pairs of folders: the run before, and the run that is compared to it."""
    caption: str = (
        "By how many percent the shortest sample of a point is longer in the second of two runs: the middle "
        "half as a box with its median, and 90 % as a line. Twenty of 200 points do 3, 5 or 10 % more work "
        "in the runs `slow3`, `slow5` and `busy-slow10`."
    )

    def _figure(self, folders: Sequence[Path]) -> Figure:
        experiment = folders[0].parent
        rows = [row for before, now in self.runs for row in _boxes(experiment, before, now)]
        spec = charts.boxes("slower, %", COLOURS)
        return Figure("differences", "Two runs", "", [Panel("", rows)], {"": spec}, COLOURS)


def _boxes(experiment: Path, before: str, now: str) -> list[dict[str, Any]]:
    """Return a box of the slowed points and one of the others, between two runs."""
    # It imports tvm, which no other picture takes.
    from benchmarks.two_runs import can_be_slowed

    differences: dict[str, list[float]] = {UNCHANGED: [], SLOWED: []}
    for pair in pairs_of(experiment / now, experiment / before):
        if pair.before and pair.now and pair.timed:
            label = SLOWED if can_be_slowed(pair.row) and "slow" in now else UNCHANGED
            ratio = min(pair.now.latency_s) / min(pair.before.latency_s)
            differences[label].append(100 * (ratio - 1))
    names = ("lo", "q1", "x", "q3", "hi")
    return [
        {
            "y": f"{before} to {now}",
            "c": label,
            **dict(zip(names, map(significant, np.percentile(found, SHARES)), strict=True)),
        }
        for label, found in differences.items()
        if found
    ]
