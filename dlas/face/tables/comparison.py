"""A comparison as a table: one line a matched group, one column a value of the axis."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from rich.text import Text

from dlas.analysis.compare import ComparedRow, Comparison, MatchedGroup
from dlas.analysis.matching import natural
from dlas.face.tables.columns import NOTHING, names, numbers, table_of
from dlas.face.tables.marks import NOISY, Notes, first_shown, shared_values
from dlas.face.tables.table import Cell, Table
from dlas.face.tables.text import Grid
from dlas.sweep.rows.labels import (
    MISSING,
    PARTLY_MEANS,
    coverage_mark,
    duration,
    factor,
    interval_ms,
    points,
    rows,
)
from dlas.sweep.rows.results import STATUSES, UNSTABLE

FASTER = "times as fast"
"""What the cells of values other than the baseline say."""
MOST_NAMED = 20
"""Most unmatched groups that are named; others are counted."""


def grid(comparison: Comparison, most: int | None = None) -> Grid:
    """Return the comparison as a grid: ratios above 1 are faster than the baseline.

    Parameters
    ----------
    most : int, optional
        Most matched groups to show, by default all; the geometric means are of all.
    """
    groups, notes = comparison.groups[:most], Notes()
    unit = "ms an image" if comparison.axis == "batch" else "ms"
    varying, same = _keys(comparison.groups)
    counted: set[int] = set()
    table = _table(comparison, groups, varying, unit, notes, counted)
    above = [
        Text(f"{comparison.axis}: speed against {comparison.baseline} on matched points", style="bold"),
        Text(
            f"{comparison.baseline} in {unit} [95 % interval]; the others are so many {FASTER} as it, "
            "where 2 takes half of its time"
        ),
    ]
    if same:
        above.append(Text(f"all: {same}"))
    missing = [*_never(comparison, notes, counted), *_unmatched(comparison, notes, counted)]
    fewer = first_shown(len(groups), len(comparison.groups), "matched groups")
    below = [*fewer, *_counts(comparison), *missing, *notes.lines()]
    return Grid(table, above, below)


def _table(
    comparison: Comparison,
    groups: Sequence[MatchedGroup],
    varying: Sequence[str],
    unit: str,
    notes: Notes,
    counted: set[int],
) -> Table:
    """Return a line a matched group, a column a value, and their geometric means."""
    means = comparison.means() if len(comparison.groups) > 1 else {}
    label = f"geometric mean of {len(comparison.complete)}" if means else ""
    strips = [
        names(name, [group.key.get(name) or MISSING for group in groups], True, label if not at else "")
        for at, name in enumerate(varying)
    ] or [names("points", ["all" for _ in groups], summary=label)]
    for value in comparison.values if groups else ():
        is_baseline = value == comparison.baseline
        cells = [_cell(group.rows.get(value), is_baseline, notes, counted) for group in groups]
        mean = factor(means.get(value, 1.0)) if means else ""
        strips.append(numbers(unit if is_baseline else FASTER, cells, value, summary=mean))
    return table_of(strips, "comparison")


def _keys(groups: Sequence[MatchedGroup]) -> tuple[list[str], str]:
    """Return the columns in which the groups differ, and a text of the values that they share."""
    keys = list(groups[0].key) if groups else []
    varying = [name for name in keys if len({group.key.get(name) for group in groups}) > 1]
    first = groups[0].key if groups else {}
    return varying, shared_values({name: first[name] for name in keys if name not in varying})


def _cell(row: ComparedRow | None, is_baseline: bool, notes: Notes, counted: set[int]) -> Cell:
    if row is None:
        return NOTHING
    if not row.ok:
        text = notes.mark(row.status, row.reason, counted=row.row not in counted)
        counted.add(row.row)
        return Cell(text, style=row.status)
    mark = (NOISY if row.noisy else "") + coverage_mark(row.coverage)
    if is_baseline:
        return Cell(interval_ms(*row.latency_s) + mark)
    if row.ratio is None:
        return NOTHING
    ratio, low, high = row.ratio
    text = f"{factor(ratio)} [{factor(low)}, {factor(high)}]{mark}" + (" tie" if row.tie else "")
    return Cell(text, style="tie" if row.tie else "good" if ratio > 1 else "bad")


def _counts(comparison: Comparison) -> list[Text]:
    """Return the counts of groups and points, with reasons why points are left out."""
    matched, total = len(comparison.groups), len(comparison.groups) + len(comparison.unmatched)
    matches = f"{matched:,} of {total:,} group{'s' if total != 1 else ''} matched"
    if matched > 1:
        complete = len(comparison.complete)
        matches += f", {complete:,} complete; the geometric mean is over the complete ones"
    lines = [Text(matches + (". tie: the interval includes 1" if matched else ""))]
    compared = {
        row.row: row for group in (*comparison.groups, *comparison.unmatched) for row in group.rows.values()
    }
    statuses = Counter(row.status for row in compared.values())
    ends = ", ".join(f"{statuses[status]:,} {status}" for status in STATUSES if statuses[status])
    if statuses[UNSTABLE]:
        ends += " (left out)"
    noisy = sum(row.noisy and row.ok for row in compared.values())
    lines.append(
        Text(f"{points(comparison.total)}: {ends}" + (f"; {noisy:,} noisy ({NOISY})" if noisy else ""))
    )
    if any(row.coverage < 1 and row.ok for row in compared.values()):
        lines.append(Text(PARTLY_MEANS))
    return [*lines, *_effects(comparison), *_left_out(comparison)]


def _effects(comparison: Comparison) -> list[Text]:
    """Return what was searched for, and what compressions prune and cost."""
    searched = [
        Text(f"{value} was searched for: {trials:,.0f} trials in {duration(search_s)}, a point's median")
        for value, (trials, search_s) in comparison.searches.items()
    ]
    return searched + [
        Text(f"{value}: {_changed(comparison.baseline, *matches)}")
        for value, matches in sorted(comparison.accuracies.items(), key=lambda item: natural(item[0]))
    ]


def _left_out(comparison: Comparison) -> list[Text]:
    """Return what is left out or counted together, and why."""
    lines = []
    if comparison.library:
        lines.append(Text(f"{points(comparison.library)} left out: the compiler brings kernels of its own"))
    if comparison.repeated:
        lines.append(Text(f"{points(comparison.repeated)} in several folders: the samples of all runs count"))
    if comparison.left_out:
        lines.append(Text(f"{rows(comparison.left_out)} left out: a copy, or one that a later row replaces"))
    return lines


def _changed(baseline: str, ratio: float, change: float, networks: int) -> str:
    """Return the share that a compression prunes and its change of accuracy, as the end of a sentence."""
    pruned = f"{ratio:.1%} of the weights pruned, " if ratio > 0 else ""
    median = f", the median of {networks:,} networks" if networks > 1 else ""
    return f"{pruned}accuracy {100 * change:+.2f} points against {baseline}{median}"


def _never(comparison: Comparison, notes: Notes, counted: set[int]) -> list[Text]:
    """Return a line for each value that is never ok, with its statuses."""
    lines = []
    for value in comparison.never:
        ends: Counter[str] = Counter()
        for group in (*comparison.groups, *comparison.unmatched):
            row = group.rows.get(value)
            if row is not None:
                ends[notes.mark(row.status, row.reason, row.row not in counted)] += row.row not in counted
                counted.add(row.row)
        lines.append(
            Text(f"never ok: {value}: " + ", ".join(f"{count} {end}" for end, count in ends.items()))
        )
    return lines


def _unmatched(comparison: Comparison, notes: Notes, counted: set[int]) -> list[Text]:
    """Return a line for each unmatched group, with the statuses of its values."""
    lines = []
    varying, _ = _keys([*comparison.groups, *comparison.unmatched])
    for number, group in enumerate(comparison.unmatched):
        statuses = []
        for value, row in group.rows.items():
            status = row.status if row.ok else notes.mark(row.status, row.reason, row.row not in counted)
            counted.add(row.row)
            statuses.append(f"{value} {status}")
        if number < MOST_NAMED:
            key = [f"{name} {group.key[name] or MISSING}" for name in varying if name in group.key]
            where = ", ".join(key) or "all"
            lines.append(Text(f"not matched: {where}: {', '.join(statuses)}"))
    if len(comparison.unmatched) > MOST_NAMED:
        lines.append(Text(f"not matched: {len(comparison.unmatched) - MOST_NAMED:,} more groups"))
    return lines
