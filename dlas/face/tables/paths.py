"""Paths of flexible networks: their Pareto sets, and which paths enter and leave them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import pandas as pd
from rich.console import Group, RenderableType
from rich.text import Text

from dlas.analysis.paths import CHANGED, NETWORK, OPEN, PLACE, numbers, sets, text
from dlas.face.tables.columns import maybe
from dlas.face.tables.marks import shared_values
from dlas.face.tables.table import Cell, Column, Line, Table
from dlas.face.tables.text import Grid
from dlas.sweep.rows.labels import MISSING, number_of

KEEP = "a set is what `keep` of the compression leaf takes"
Record = Mapping[Any, Any]
Filters = Callable[[Record], Mapping[str, str]]
"""The values of axes by which a page hides a line."""


def pareto_sets(found: pd.DataFrame, filters: Filters = lambda place: {}) -> Table:
    """Return the Pareto set of each place, what multiply-adds name in its stead, and what paths save.

    Parameters
    ----------
    found : DataFrame
        What :func:`dlas.analysis.paths.places` returned.
    filters : callable
        As :data:`Filters`, of a place.
    """
    rows, named = found.to_dict("records"), varying(found) or [NETWORK]
    lines = [
        Line(
            [
                *(Cell(maybe(row[name], str)) for name in named),
                *(Cell(shown, style="muted" if name == OPEN else "") for name, shown in sets(row).items()),
                Cell(str(row["paths"])),
                *map(Cell, numbers(row).values()),
            ],
            filters({name: row[name] for name in PLACE if name != NETWORK}),
        )
        for row in rows
    ]
    columns = [
        *(Column(name, shared=True) for name in named),
        *(Column(name, wide=True) for name in sets(rows[0])),
        *(Column(name, number=True) for name in ("paths", *numbers(rows[0]))),
    ]
    caption = (
        "Pareto sets of accuracy and latency, and of accuracy and multiply-adds; the fastest path, how many "
        "times as fast as the path of zeros it is, the network itself, and its share of that one's "
        "multiply-adds; the rank correlation of multiply-adds and latency over all paths."
    )
    caption = " ".join(filter(None, [caption, without_accuracies(found)]))
    return Table("paths", caption, columns, lines, len(named))


def without_accuracies(found: pd.DataFrame) -> str:
    """Return how many paths are in no Pareto set, and why, as a sentence; empty where all have accuracies.

    Parameters
    ----------
    found : DataFrame
        What :func:`dlas.analysis.paths.places` returned.
    """
    count, total = int(found["without_accuracy"].sum()), int(found["paths"].sum())
    if not count:
        return ""
    which = "No path has" if count == total else f"{count:,} of {total:,} paths do not have"
    return (
        f"{which} an accuracy, without which none is in a Pareto set: the network is untrained, or its "
        "images have no labels."
    )


def set_changes(found: pd.DataFrame, changed: pd.DataFrame, filters: Filters = lambda place: {}) -> Table:
    """Return which paths enter and leave the sets between neighbouring places.

    Parameters
    ----------
    found, changed : DataFrame
        What :func:`dlas.analysis.paths.places` and :func:`dlas.analysis.paths.changes` returned.
    filters : callable
        As :data:`Filters`, of what both places have in common.
    """
    named = varying(found)
    rows = [row for along in CHANGED for row in changed[changed["along"] == along].to_dict("records")]
    lines = [
        Line(
            [
                Cell(f"{row['along']}: {row['first']} to {row['second']}"),
                Cell(", ".join(_called(name, row[name]) for name in named if row[name] is not None)),
                Cell(text(row["enter"]) or MISSING),
                Cell(text(row["leave"]) or MISSING),
                Cell(str(row["open"])),
            ],
            filters({name: row[name] for name in PLACE if name != NETWORK and row[name] is not None}),
            last=number + 1 < len(rows) and rows[number + 1]["along"] != row["along"],
        )
        for number, row in enumerate(rows)
    ]
    columns = [Column(name, wide=True) for name in ("between", "place", "enter", "leave")]
    columns.append(Column("open", number=True))
    caption = (
        "Paths that are surely in the Pareto set of one place and surely not in that of the other; for those "
        "that are open in either, intervals do not tell."
    )
    return Table("paths-changes", caption, columns, lines, names=2)


def _called(name: str, value: object) -> str:
    return f"{name} {value}" if name in ("batch", "seed") else maybe(value, str)


def varying(found: pd.DataFrame) -> list[str]:
    """Return the columns of a place that have several values."""
    return [name for name in PLACE if found[name].nunique(dropna=False) > 1]


def listing(found: pd.DataFrame, changed: pd.DataFrame) -> RenderableType:
    """Return the Pareto set of each place, and below it which paths enter and leave it between places."""
    same = {name: found[name].iloc[0] for name in PLACE if name not in varying(found) and name != "task"}
    head = f"{number_of(len(found), 'place')}; {shared_values(same)}; {KEEP}"
    lacking = without_accuracies(found)
    below = [Text(lacking)] if lacking else []
    pieces: list[RenderableType] = [Grid(pareto_sets(found), [Text(head)], below)]
    if len(changed):
        table = set_changes(found, changed)
        pieces += [Text(), Grid(table, [Text("between places", style="bold"), Text(table.caption)])]
    return Group(*pieces)
