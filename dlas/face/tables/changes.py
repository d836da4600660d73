"""Two runs against each other as a table: one line a point that changed, and what the machine did."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby
from math import ceil

import numpy as np
from rich.text import Text

from dlas.analysis.against.changes import FEWER, MORE, OUTCOMES, SAME, TOLERANCE, UNCLEAR, Change, Changes
from dlas.analysis.against.noise import SENTINELS, SHORTEST, RunNoise
from dlas.face.tables.columns import NOTHING, cell_of, names, numbers, signed, table_of
from dlas.face.tables.marks import first_shown, shared_values
from dlas.face.tables.points import MOST_LINES
from dlas.face.tables.table import Cell
from dlas.face.tables.text import Grid
from dlas.stack import PART_AXES
from dlas.sweep.rows import intervals
from dlas.sweep.rows.labels import label, milliseconds, points, shortened
from dlas.sweep.rows.results import Row

AXES = (*PART_AXES, "batch", "task", "seed")
QUIET = (SAME, UNCLEAR)
"""Outcomes that are counted, and listed only where all points are."""
STYLES = {"slower": "bad", "faster": "good", "failed": "failed", "fixed": "good"}
STYLES |= {MORE: "bad", FEWER: "good"}
NAMED = {"peak_memory_bytes": "peak memory", "model_bytes": "size", "packed_bytes": "size as packed"}
NAMED |= {"library_bytes": "size of the library"}
LAYERS = 2
"""Layers that are named for a point."""


def grid(changes: Changes, every: bool = False) -> Grid:
    """Return the points that changed as a grid; ``every`` also lists those that are the same or unclear."""
    listed = [each for each in changes.points if every or each.outcome not in QUIET]
    shown = listed[: None if every else MOST_LINES]
    varying, same = keys_of([each.pair.row for each in listed])
    above = [Text(f"{changes.runs[1]} against {changes.runs[0]}: {_counts(changes)}", style="bold")]
    above += [Text(same)] if same else []
    strips = [names(axis, [label(getattr(each.pair.row, axis)) for each in shown], True) for axis in varying]
    counted = [_instructions(each) for each in shown]
    strips = strips or [names("points", ["all" for _ in shown])]
    strips += [
        numbers("outcome", [Cell(each.outcome, style=STYLES.get(each.outcome, "")) for each in shown]),
        numbers("before, ms", [_ms(each.pair.before) for each in shown]),
        numbers("now, ms", [_ms(each.pair.now) for each in shown]),
        numbers("time [95 % interval]", [_ratio(each) for each in shown]),
        *([numbers("instructions", counted)] if any(cell is not NOTHING for cell in counted) else []),
        names("layers", [_layers(each) for each in shown]),
        names("what differs", [shortened("; ".join(each.causes)) for each in shown]),
    ]
    below = [*first_shown(len(shown), len(listed), "points"), *_by_cause(changes), *_others(changes)]
    below += _machine(changes.noise, changes) if changes.noise else []
    return Grid(table_of(strips, "changes"), above, below)


def _counts(changes: Changes) -> str:
    counts = {outcome: changes.count(outcome) for outcome in OUTCOMES}
    return ", ".join(f"{count:,} {outcome}" for outcome, count in counts.items() if count)


def keys_of(rows: Sequence[Row]) -> tuple[list[str], str]:
    """Return the axes in which rows differ, and a text of what they share."""
    values = {axis: {label(getattr(row, axis)) for row in rows} for axis in AXES}
    varying = [axis for axis, found in values.items() if len(found) > 1]
    shared = {axis: next(iter(found)) for axis, found in values.items() if len(found) == 1}
    return varying, f"all: {shared_values(shared)}" if shared else ""


def _ms(row: Row | None) -> Cell:
    if row is None or not row.latency_s:
        return Cell(row.status, style=row.status) if row else NOTHING
    return Cell(milliseconds(intervals.median(row.latency_s)[0]))


def _ratio(change: Change) -> Cell:
    middle, low, high = change.ratio
    return NOTHING if np.isnan(middle) else Cell(f"{middle:.3f} [{low:.3f}, {high:.3f}]")


def _instructions(change: Change) -> Cell:
    return NOTHING if np.isnan(change.instructions) else Cell(f"{change.instructions:.4f}")


def _layers(change: Change) -> Cell:
    if change.outcome in (MORE, FEWER):
        told = [f"{name} {more:+,.0f} instructions" for name, more in change.kernels[:LAYERS] if more]
        return cell_of(", ".join(told) or None, str)
    if change.outcome not in STYLES or np.isnan(change.ratio[0]):
        return NOTHING
    told = [f"{name} {1e3 * seconds:+.3g} ms" for name, seconds in change.layers[:LAYERS]]
    return cell_of(", ".join(told) or None, str)


def _by_cause(changes: Changes) -> list[Text]:
    """Return how many points are slower and faster by what differs between their rows."""
    told = [each for each in changes.points if each.outcome not in QUIET and each.causes]
    told.sort(key=lambda each: each.causes)
    lines = []
    for causes, group in groupby(told, key=lambda each: each.causes):
        ended = [each.outcome for each in group]
        counts = ", ".join(f"{ended.count(outcome):,} {outcome}" for outcome in OUTCOMES if outcome in ended)
        lines.append(Text(f"{shortened('; '.join(causes))}: {counts}"))
    return lines


def _others(changes: Changes) -> list[Text]:
    """Return in how many points other quantities differ, and by how much at most."""
    return [
        Text(f"{NAMED.get(name, name)}: differs in {points(len(found))}, by {signed(found[0][1])} at most")
        for name, found in changes.quantities.items()
    ]


def _machine(noise: RunNoise, changes: Changes) -> list[Text]:
    """Return what the machine did between the runs, and how small a change can be found."""
    by = f"{points(noise.controls)} that cannot have changed" if noise.controls else "the sentinel alone"
    sentinel = "" if noise.sentinel is None else f"; the sentinel: {signed(np.expm1(noise.sentinel))}"
    ways = {SENTINELS: ", each point by the one that ran beside it", SHORTEST: "; times are shortest samples"}
    detectable = [each.detectable for each in changes.points if not np.isnan(each.detectable)]
    found = f"{np.median(detectable):.1%} in half of the points, {max(detectable):.1%} in all"
    between = f"runs of an unchanged point differ by {np.sqrt(noise.between):.1%}"
    samples = [each.samples for each in changes.points if not np.isnan(each.samples)]
    return [
        Text(
            f"the machine was {signed(np.expm1(noise.shift))} slower by {by}, taken out{sentinel}"
            f"{ways.get(noise.by, '')}"
        ),
        Text(f"found with 95 % power: {found}; {between}, which more samples do not mend"),
        Text(f"a slowdown of {TOLERANCE:.0%}: {_findable(samples)}"),
    ]


def _findable(samples: list[float]) -> str:
    """Return in how many points a slowdown is found as it is, and what it would take in the others."""
    now = f"found with that power in {sum(each <= 1 for each in samples):,} of {points(len(samples))}"
    if max(samples) <= 1:
        return now
    if np.isinf(max(samples)):
        return f"{now}; runs differ too much for any number of samples to tell it in the others"
    return f"{now}, in all of them with {ceil(max(samples)):,} times as many samples"
