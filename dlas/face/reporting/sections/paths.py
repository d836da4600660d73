"""Paths of flexible networks: what they save, and the Pareto sets of each place."""

from __future__ import annotations

import pandas as pd

from dlas.analysis.paths import (
    CHANGED,
    FEWEST,
    NETWORK,
    OPEN,
    PLACE,
    changes,
    numbers,
    paths_of,
    places,
    sets,
    text,
)
from dlas.face.reporting.blocks import Absent, Block, Cell, Column, Line, Section, Table
from dlas.face.reporting.context import Context
from dlas.face.reporting.sections.path_figures import called, figures
from dlas.sweep.rows.labels import MISSING


def section(context: Context) -> Section | Absent:
    """Return which paths are worth taking, and what that depends on.

    References
    ----------
    J. Clemons et al., "Augmenting Legacy Networks for Flexible Inference", Figures 1 to 4, 6 and 7.
    """
    title = "Paths of flexible networks"
    found = paths_of(context.points)
    if found.empty or places(found)["paths"].max() < FEWEST:
        return Absent(title, f"{FEWEST} timed paths of a flexible network that differ in nothing else")
    lead = (
        "A path takes the network's own phase for a 0 and the shallow one for a 1. It is in the Pareto set "
        "where every path that is at least as accurate is surely slower; where intervals overlap, that is "
        "open. Without accuracies, a path counts as at least as accurate as those that have its shallow "
        "phases and more."
    )
    blocks: list[Block] = [*figures(context, found), _table(context, places(found))]
    if len(changed := changes(found)):
        blocks.append(_changes(context, changed))
    return Section("paths", title, lead, blocks)


def _table(context: Context, found: pd.DataFrame) -> Table:
    """Return the Pareto set of each place."""
    rows = found.to_dict("records")
    lines = [
        Line(
            [
                Cell(called(context, row, PLACE)),
                *(Cell(shown, style="muted" if name == OPEN else "") for name, shown in sets(row).items()),
                *map(Cell, numbers(row).values()),
            ],
            context.filters({name: row[name] for name in PLACE if name != NETWORK}),
        )
        for row in rows
    ]
    columns = [
        Column("place"),
        *(Column(name, wide=True) for name in sets(rows[0])),
        *(Column(name, number=True) for name in numbers(rows[0])),
    ]
    caption = (
        "Pareto sets of accuracy and latency, and of accuracy and multiply-adds; how many times as fast as "
        "the legacy network the fastest path is, and its share of the multiply-adds; the rank correlation of "
        "multiply-adds and latency over all paths."
    )
    return Table("paths", caption, columns, lines)


def _changes(context: Context, changed: pd.DataFrame) -> Table:
    """Return which paths enter and leave the sets."""
    lines = [
        Line(
            [
                Cell(f"{row['along']}: {row['first']} to {row['second']}"),
                Cell(called(context, row, [name for name in PLACE if row[name] is not None])),
                Cell(text(row["enter"]) or MISSING),
                Cell(text(row["leave"]) or MISSING),
                Cell(str(row["open"])),
            ],
            context.filters({name: row[name] for name in PLACE if name != NETWORK and row[name] is not None}),
        )
        for along in CHANGED
        for row in changed[changed["along"] == along].to_dict("records")
    ]
    columns = [
        Column("between"),
        Column("place"),
        Column("enter", wide=True),
        Column("leave", wide=True),
        Column("open", number=True),
    ]
    caption = (
        "Paths that are surely in the Pareto set of one place and surely not in that of the other; for those "
        "that are open in either, intervals do not tell."
    )
    return Table("paths-changes", caption, columns, lines, names=2)
