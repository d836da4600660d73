"""What rules say of two runs of one study, of which some points can be slowed.

``python -m benchmarks.two_runs work FOLDER 5% TO`` writes how many steps of work slow the points of
``experiments/two-runs`` that can be slowed by a share of their time in a folder.

``python -m benchmarks.two_runs rules BEFORE NOW`` prints how many points each rule calls slower, of those and
of the others: that of ``dlas compare --against``, the same where only another runtime's points are known not
to have changed, asv's and ReFrame's.
"""

from __future__ import annotations

import argparse
import json
import statistics
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

from scipy import stats

from benchmarks.slowed import name_of
from dlas.analysis.against.changes import FASTER, SLOWER, changes_of
from dlas.analysis.against.pairs import Pair, pairs_of
from dlas.sweep.rows.results import Row, read_rows

SLOWED = "benchmarks.slowed:Slowed"
OTHER = "onnxruntime"
"""A runtime that no change of our own code reaches."""
STEP_S = 1.4e-9
"""A step of the work, as kept rows show it: six shifts and exclusive-ors, each after the other."""
ASV_FACTOR, ASV_P = 1.1, 0.002
"""``asv compare``: the factor that is worth a word by default, and the chance of its Mann-Whitney test."""
REFRAME_TOLERANCE = 0.05
"""ReFrame: how far a time may be from its reference.  It has no default: users write it."""

Called = dict[str, int]
"""Points by their ids that a rule calls slower, 1, or faster, -1."""


def work_for(rows: Sequence[Row], share: float) -> dict[str, int]:
    """Return the steps by kernel that make each slowed point's kernels longer by a share of its time.

    A point's time is spread over its kernels by theirs; a kernel of several points takes their mean.
    """
    steps = defaultdict(list)
    for row in rows:
        if not can_be_slowed(row):
            continue
        kernels = [(name_of(each), each["latency_s"] or 0.0) for each in row.layers if "decisions" in each]
        scale = share * statistics.median(row.latency_s) / sum(seconds for _, seconds in kernels)
        for name, seconds in kernels:
            steps[name].append(scale * seconds / STEP_S)
    return {name: round(statistics.fmean(own)) for name, own in steps.items()}


def can_be_slowed(row: Row) -> bool:
    """Return whether a row is of one of the points that work can slow."""
    return str(row.compiler["name"]) == SLOWED


def ours(pairs: Sequence[Pair]) -> Called:
    """Return what ``dlas compare --against`` calls slower and faster."""
    found = changes_of(pairs).points
    return {
        each.pair.row.id: 1 if each.outcome == SLOWER else -1
        for each in found
        if each.outcome in (SLOWER, FASTER)
    }


def ours_after_a_change_of_all_code(pairs: Sequence[Pair]) -> Called:
    """Return the same where all of our own points have other keys, as after a change of shared code."""
    changed = [
        pair if pair.row.compiler["name"] == OTHER else replace(pair, now=replace(pair.now, key="another"))
        for pair in pairs
        if pair.now
    ]
    return ours(changed)


def asv(pairs: Sequence[Pair]) -> Called:
    """Return what ``asv compare`` calls changed: the medians by its factor, and the samples by its test."""

    def rule(before: list[float], now: list[float]) -> int:
        ratio = statistics.median(now) / statistics.median(before)
        if 1 / ASV_FACTOR < ratio < ASV_FACTOR:
            return 0
        p = stats.mannwhitneyu(before, now).pvalue
        return 0 if p >= ASV_P else 1 if ratio > 1 else -1

    return _each(pairs, rule)


def reframe(pairs: Sequence[Pair]) -> Called:
    """Return what ReFrame calls failed, with the time before as the reference."""

    def rule(before: list[float], now: list[float]) -> int:
        ratio = statistics.median(now) / statistics.median(before)
        return 0 if abs(ratio - 1) <= REFRAME_TOLERANCE else 1 if ratio > 1 else -1

    return _each(pairs, rule)


def _each(pairs: Sequence[Pair], rule: Callable[[list[float], list[float]], int]) -> Called:
    timed = [(pair.before, pair.now) for pair in pairs if pair.timed]
    called = {now.id: rule(before.latency_s, now.latency_s) for before, now in timed if before and now}
    return {row_id: way for row_id, way in called.items() if way}


RULES: dict[str, Callable[[Sequence[Pair]], Called]] = {
    "dlas": ours,
    "dlas, all own code changed": ours_after_a_change_of_all_code,
    "asv": asv,
    "ReFrame": reframe,
}


def counts(pairs: Sequence[Pair], called: Called) -> tuple[int, int]:
    """Return how many of the points that work can slow are called slower, and how many others are called."""
    slowed = {pair.row.id for pair in pairs if can_be_slowed(pair.row)}
    found = sum(called.get(row_id) == 1 for row_id in slowed)
    return found, sum(row_id not in slowed for row_id in called)


def main() -> None:
    """Write work, or print what the rules say of two runs."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    work = commands.add_parser("work")
    work.add_argument("folder", type=Path)
    work.add_argument("share", help="such as 5%%")
    work.add_argument("to", type=Path)
    rules = commands.add_parser("rules")
    rules.add_argument("before", type=Path)
    rules.add_argument("now", type=Path)
    given = parser.parse_args()
    if given.command == "work":
        steps = work_for(list(read_rows(given.folder)), float(given.share.removesuffix("%")) / 100)
        given.to.write_text(json.dumps(steps, indent=1) + "\n")
        return
    pairs = pairs_of(given.now, given.before)
    print("| rule | of those that can be slowed, called slower | of the others, called changed |")
    print("|---|---|---|")
    for name, rule in RULES.items():
        print(f"| {name} | {' | '.join(map(str, counts(pairs, rule(pairs))))} |")


if __name__ == "__main__":
    main()
