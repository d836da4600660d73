"""Points over versions as a table: one line for each version at which a point's time changed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from rich.text import Text

from dlas.analysis.against.changes import SAME
from dlas.analysis.against.history import EVENTS, Event, PointHistory, VersionHistory
from dlas.face.tables.changes import STYLES, keys_of
from dlas.face.tables.columns import NOTHING, names, numbers, signed, table_of
from dlas.face.tables.marks import first_shown
from dlas.face.tables.points import MOST_LINES
from dlas.face.tables.table import Cell
from dlas.face.tables.text import Grid
from dlas.sweep.rows.labels import label, milliseconds, number_of, points, rows, shortened

SAYS_LITTLE = (
    "a change needs two versions on each side: give four or more; `dlas compare NOW --against BEFORE` "
    "compares two"
)


@dataclass(frozen=True)
class _Entry:
    """A line of the table."""

    history: PointHistory
    event: Event | None
    """None where nothing happened."""


def grid(history: VersionHistory, every: bool = False) -> Grid:
    """Return what happened at which version as a grid; ``every`` also lists points to which nothing did."""
    entries = [entry for each in history.points for entry in _entries(each)]
    listed = [each for each in entries if every or each.event]
    shown = listed[: None if every else MOST_LINES]
    varying, same = keys_of([each.history.line.row for each in listed])
    machines = sorted({each.line.machine for each in history.points})
    axes = [
        names(axis, [label(getattr(each.history.line.row, axis)) for each in shown], True) for axis in varying
    ]
    if len(machines) > 1:
        axes.append(names("machine", [each.history.line.machine for each in shown], True))
    strips = axes or [names("points", ["all" for _ in shown])]
    strips += [
        numbers("versions", [str(len(each.history.values)) for each in shown]),
        numbers("event", [_kind(each) for each in shown]),
        numbers("at", [_at(each, history) for each in shown]),
        numbers("before, ms", [_ms(each, -1) for each in shown]),
        numbers("from then, ms", [_ms(each, 0) for each in shown]),
        numbers("time [95 % interval]", [_ratio(each) for each in shown]),
        names(
            "what differs", [shortened("; ".join(each.event.causes if each.event else ())) for each in shown]
        ),
    ]
    above = [Text(_title(history, entries), style="bold")] + ([Text(same)] if same else [])
    below = [*first_shown(len(shown), len(listed), "lines"), *_versions(history, listed)]
    return Grid(table_of(strips, "history"), above, [*below, *_machines(history, machines), *_power(history)])


def _entries(history: PointHistory) -> list[_Entry]:
    return [_Entry(history, event) for event in history.events] or [_Entry(history, None)]


def _title(history: VersionHistory, entries: Sequence[_Entry]) -> str:
    kinds = [_kind(each).text for each in entries]
    counts = ", ".join(f"{kinds.count(kind):,} {kind}" for kind in EVENTS if kind in kinds)
    ids = {each.line.row.id for each in history.points}
    return f"{points(len(ids))} over {number_of(len(history.names), 'version')}: {counts}"


def _kind(entry: _Entry) -> Cell:
    if len(entry.history.values) == 1:
        return NOTHING
    kind = entry.event.kind if entry.event else SAME
    return Cell(kind, style=STYLES.get(kind, "" if kind == SAME else "doubt"))


def _at(entry: _Entry, history: VersionHistory) -> Cell:
    if entry.event is None:
        return NOTHING
    return Cell(str(history.names[entry.history.line.rows[entry.event.at].version][0]))


def _ms(entry: _Entry, offset: int) -> Cell:
    """Return the level before an event, or the level or the outlying time from it on."""
    event, history = entry.event, entry.history
    if event is None:
        return Cell(milliseconds(history.level(len(history.values) - 1)))
    after = history.level(event.at) * (event.ratio[0] if event.kind not in STYLES else 1.0)
    if offset == 0:
        return Cell(milliseconds(after))
    return Cell(milliseconds(after / event.ratio[0]))


def _ratio(entry: _Entry) -> Cell:
    if entry.event is None:
        return NOTHING
    middle, low, high = entry.event.ratio
    return Cell(f"{middle:.3f} [{low:.3f}, {high:.3f}]")


def _versions(history: VersionHistory, listed: Sequence[_Entry]) -> list[Text]:
    """Return the folders of the versions at which anything happened, with the first day of each."""
    named: dict[int, tuple[str, str]] = {}
    for each in listed:
        if each.event:
            own = each.history.line.rows[each.event.at]
            number, folder = history.names[own.version]
            day = min((own.row.started or "")[:10], named.get(number, (folder, "9"))[1])
            named[number] = (folder, day)
    return [Text(f"version {number}: {' '.join(named[number])}".rstrip()) for number in sorted(named)]


def _machines(history: VersionHistory, machines: Sequence[str]) -> list[Text]:
    """Return how much each machine's speed changed between two versions at most, which was taken out."""
    lines = []
    for machine in machines:
        own = {step: noise for step, noise in history.steps.items() if step[0] == machine}
        if not own:
            lines.append(Text(f"{machine}: one version alone, in a line of its own"))
            continue
        (_, before, now), most = max(own.items(), key=lambda each: abs(each[1].shift))
        by = f"{points(most.controls)} that cannot have changed" if most.controls else "the sentinel alone"
        between = float(np.sqrt(np.median([noise.between for noise in own.values()])))
        lines.append(
            Text(
                f"{machine}: between versions {signed(np.expm1(most.shift))} slower at most, from "
                f"{history.names[before][0]} to {history.names[now][0]} by {by}, taken out; runs of an "
                f"unchanged point differ by {between:.1%}"
            )
        )
    return lines


def _power(history: VersionHistory) -> list[Text]:
    told = [Text(f"left out: {rows(history.untimed)} without a time")] if history.untimed else []
    if np.isnan(history.detectable):
        return [*told, Text(SAYS_LITTLE)]
    share = f"a lasting change of {history.detectable:.1%} in the middle of the longest lines"
    return [*told, Text(f"found with 95 % power: {share}, in half of them")]
