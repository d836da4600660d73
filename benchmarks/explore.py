"""How well does a share of a sweep stand for the whole, chosen as it goes?  ``python -m benchmarks.explore``.

Sweeps that were recorded are explored again: a point that is chosen has the latency of its row.  Points drawn
at random are predicted from by the same process.  For each share: the mean relative error of all points that
are not in it; by how much the algorithm and compiler that look fastest there, measured or predicted, are
slower than the fastest, the mean over all settings that have a choice; and how many lie in their intervals.
"""

from __future__ import annotations

import argparse
import statistics
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from dlas.prediction.adaptive.share.acquisition import fastest, first_share
from dlas.prediction.adaptive.share.outcomes import PointOutcome
from dlas.prediction.adaptive.share.share import batches_of_share, budget_of, process_of
from dlas.prediction.adaptive.share.space import Space
from dlas.sweep.rows.results import read_rows
from dlas.sweep.study.point import Point

SWEEPS = tuple(
    Path("experiments") / name / "rows" for name in ("tuned-vs-untuned", "sparse-break-even", "training-cost")
)
TENTH = 0.1
WAYS = {"chosen": (1, True), "at random": (1, False), "twice as many at random": (2, False)}
"""How many times the share, and whether its points are chosen."""


class Replay(NamedTuple):
    """What a share says of a sweep; shares of 1, and None where no setting has a choice."""

    error: float
    slower: float | None
    covered: float


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("folders", nargs="*", type=Path, default=SWEEPS, help="rows of sweeps")
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--share", type=float, default=TENTH, help="instead of a tenth")
    asked = parser.parse_args()
    print("| sweep | points | how many | mean error of the rest | choice slower by | in their intervals |")
    print("|---|---|---|---|---|---|")
    for folder in asked.folders:
        space, outcomes = recorded(folder)
        label = folder.parent.name if folder.name == "rows" else folder.name
        # A small sweep may need more than a tenth to have every value once.
        share = max(asked.share, len(first_share(space, 0)) / len(space))
        for name, (times, chosen) in WAYS.items():
            part = min(times * share, 1.0)
            found = [replay(space, outcomes, part, chosen, seed) for seed in range(asked.seeds)]
            count = f"{budget_of(part, len(space))} of {len(space)}"
            print(f"| {label} | {name} | {count} {cells(found)} |", flush=True)


def recorded(folder: Path) -> tuple[Space, dict[int, PointOutcome]]:
    """Return the points of a folder's rows, and what became of them."""
    rows = list(read_rows(folder))
    space = Space.of([Point.of(vars(row)) for row in rows])
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
