"""How well does a share of a sweep stand for the whole, chosen as it goes?  ``python -m benchmarks.explore``.

Sweeps that were recorded are explored again: a point that is chosen has the latency of its row.  Points drawn
at random are predicted from by the same process.  For each share: the mean relative error of all points that
are not in it; by how much the algorithm and compiler that look fastest there, measured or predicted, are
slower than the fastest, the mean over all settings that have a choice; and how many lie in their intervals.

Then all points race, as for ``--for fastest``: a point's first samples are what it takes in the race, and
those that came near the fastest are measured in full.  For each sweep: by how much the fastest of these is
slower than the fastest of all, in the mean and at most; and what share of the sweep's seconds that takes.
"""

from __future__ import annotations

import argparse
import statistics
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple, cast

import numpy as np

from dlas.prediction.adaptive.share.acquisition import fastest, first_share
from dlas.prediction.adaptive.share.multiply_adds import macs_of_rows
from dlas.prediction.adaptive.share.outcomes import PointOutcome
from dlas.prediction.adaptive.share.share import batches_of_share, budget_of, process_of
from dlas.prediction.adaptive.share.space import Space
from dlas.prediction.adaptive.share.strategy import SAMPLES, near
from dlas.sweep.rows.results import Row, read_rows
from dlas.sweep.study.point import Point

SWEEPS = tuple(
    Path("experiments") / name / "rows"
    for name in ("tuned-vs-untuned", "sparse-break-even", "precision", "leaf-digits", "training-cost")
)
TENTH = 0.1
WAYS = {"chosen": (1, True), "at random": (1, False), "twice as many at random": (2, False)}
"""How many times the share, and whether its points are chosen."""


class Replay(NamedTuple):
    """What a share says of a sweep; shares of 1, and None where no setting has a choice."""

    error: float
    slower: float | None
    covered: float


class Race(NamedTuple):
    """What a race says of a sweep; shares of 1."""

    settings: int
    """Those that have a choice."""
    full: float
    """Share of the points that are measured in full."""
    slower: float
    worst: float
    seconds: float
    """Of those that the sweep took."""


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("folders", nargs="*", type=Path, default=SWEEPS, help="rows of sweeps")
    parser.add_argument("--seeds", type=int, default=40)
    parser.add_argument("--share", type=float, default=TENTH, help="instead of a tenth")
    asked = parser.parse_args()
    print("| sweep | points | how many | mean error of the rest | choice slower by | in their intervals |")
    print("|---|---|---|---|---|---|")
    for folder in asked.folders:
        space, outcomes = recorded(folder)
        label = named(folder)
        # A small sweep may need more than a tenth to have every value once.
        share = max(asked.share, len(first_share(space, 0)) / len(space))
        for name, (times, chosen) in WAYS.items():
            part = min(times * share, 1.0)
            found = [replay(space, outcomes, part, chosen, seed) for seed in range(asked.seeds)]
            count = f"{budget_of(part, len(space))} of {len(space)}"
            print(f"| {label} | {name} | {count} {cells(found)} |", flush=True)
    print("\n| sweep | settings | measured in full | slower by | at most | of the sweep's seconds |")
    print("|---|---|---|---|---|---|")
    for folder in asked.folders:
        if (told := race(list(read_rows(folder)))) is not None:
            shares = " | ".join(f"{each:.1%}" for each in (told.full, told.slower, told.worst, told.seconds))
            print(f"| {named(folder)} | {told.settings} | {shares} |", flush=True)


def named(folder: Path) -> str:
    """Return what a sweep is called."""
    return folder.parent.name if folder.name == "rows" else folder.name


def race(rows: Sequence[Row]) -> Race | None:
    """Return what becomes of a sweep's points in a race; None where no setting has a choice."""
    timed = [row for row in rows if row.timed]
    space = Space.of([Point.of(vars(row)) for row in timed])
    truth = np.array([statistics.median(row.latency_s) for row in timed])
    times = {at: statistics.median(row.latency_s[:SAMPLES]) for at, row in enumerate(timed)}
    full = sorted(near(times, space.rivals))
    groups, counts = np.unique(space.rivals, return_counts=True)
    contested = np.isin(space.rivals, groups[counts > 1])
    if not contested.any():
        return None
    looks = np.where(np.isin(np.arange(len(timed)), full), truth, np.nan)[contested]
    found, best = (fastest(each, space.rivals[contested]) for each in (looks, truth[contested]))
    apart = truth[contested][found] / truth[contested][best] - 1
    seconds = [cast(Mapping[str, float], row.seconds or {}) for row in timed]
    measuring = np.array([each.get("measure", 0.0) for each in seconds])
    whole = np.array([sum(each.values()) for each in seconds])
    # A race warms up and takes its samples.
    spent = (whole - measuring).sum() + measuring[full].sum() + (SAMPLES + 1) * truth.sum()
    share = float(spent / whole.sum())
    return Race(len(apart), len(full) / len(timed), float(apart.mean()), float(apart.max()), share)


def recorded(folder: Path) -> tuple[Space, dict[int, PointOutcome]]:
    """Return the points of a folder's rows, and what became of them."""
    rows = list(read_rows(folder))
    space = Space.of([Point.of(vars(row)) for row in rows], macs_of_rows(rows))
    return space, {place: PointOutcome.of(row) for place, row in enumerate(rows)}


def replay(space: Space, outcomes: dict[int, PointOutcome], share: float, chosen: bool, seed: int) -> Replay:
    """Return what a share says of the whole sweep."""
    if chosen:
        first = first_share(space, seed)
        known: dict[int, PointOutcome] = {}
        for batch in batches_of_share(space, share, first, known, seed=seed):
            known |= {place: outcomes[place] for place in batch}
    else:
        budget = budget_of(share, len(space))
        drawn = np.random.default_rng(seed).choice(len(space), budget, replace=False).tolist()
        known = {place: outcomes[place] for place in drawn}
    truth = np.array([outcomes[place].seconds or np.nan for place in range(len(space))])
    rest = np.array([at for at in range(len(space)) if at not in known and truth[at] == truth[at]])
    process = process_of(space, known)
    means, variances = process.predict(rest)
    looks = truth.copy()
    looks[rest] = np.exp(means)
    within = np.abs(np.log(truth[rest]) - means) <= process.half_widths(variances)
    errors = np.abs(np.exp(means) / truth[rest] - 1)
    return Replay(float(errors.mean()), slower(truth, looks, space), float(within.mean()))


def slower(truth: np.ndarray, looks: np.ndarray, space: Space) -> float | None:
    """Return by how much what looks fastest is slower than the fastest, the mean over settings."""
    timed = np.flatnonzero(~np.isnan(truth))
    groups, counts = np.unique(space.rivals[timed], return_counts=True)
    contested = [place for place in timed if counts[groups == space.rivals[place]][0] > 1]
    if not contested:
        return None
    rivals = space.rivals[contested]
    guessed, best = fastest(looks[contested], rivals), fastest(truth[contested], rivals)
    return float((truth[contested][guessed] / truth[contested][best] - 1).mean())


def cells(found: Sequence[Replay]) -> str:
    """Return the means over all seeds, and of the errors the range."""
    errors = [each.error for each in found]
    choices = [each.slower for each in found if each.slower is not None]
    told = f"{statistics.mean(choices):.1%}" if choices else "no choice"
    covered = statistics.mean(each.covered for each in found)
    return (
        f"| {statistics.mean(errors):.1%} ({min(errors):.1%} to {max(errors):.1%}) | {told} | {covered:.0%}"
    )


if __name__ == "__main__":
    main()
