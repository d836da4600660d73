"""Paths of flexible networks: normalised latency against multiply-adds, and the Pareto sets of each place."""

from __future__ import annotations

from typing import Any

import pandas as pd

from dlas.analysis.matching import groups, natural
from dlas.analysis.paths import (
    CHANGED,
    FEWEST,
    IN,
    NETWORK,
    OPEN,
    PATH,
    PLACE,
    changes,
    numbers,
    paths_of,
    places,
    sets,
    text,
)
from dlas.reporting import charts
from dlas.reporting.blocks import Absent, Block, Cell, Column, Figure, Line, Panel, Section, Table
from dlas.reporting.context import Context, significant
from dlas.reporting.palette import SLOTS, rgb
from dlas.rows.labels import MISSING

OF_PANEL = tuple(name for name in PLACE if name not in ("batch", "seed"))
"""Columns whose values have a panel of their own."""


def section(context: Context) -> Section | Absent:
    """Return which paths are worth taking, and what that depends on.

    References
    ----------
    J. Clemons et al., "Augmenting Legacy Networks for Flexible Inference", Figures 1, 3, 4, 6 and 7.
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
    blocks: list[Block] = []
    if panels := _panels(context, found):
        blocks.append(_figure(found, panels))
    blocks.append(_table(context, places(found)))
    if len(changed := changes(found)):
        blocks.append(_changes(context, changed))
    return Section("paths", title, lead, blocks)


def _panels(context: Context, found: pd.DataFrame) -> list[Panel]:
    """Return latency by multiply-adds, both as shares of the legacy network's, by network and device."""
    panels = []
    for inside in groups(found, OF_PANEL):
        rows: list[dict[str, Any]] = []
        block = found.iloc[inside]
        for lines in groups(block, ("batch", "seed")):
            rows += _normalised(block.iloc[lines])
        if rows:
            panels.append(Panel(_called(context, block.iloc[0], OF_PANEL), rows))
    return panels


def _normalised(inside: pd.DataFrame) -> list[dict[str, Any]]:
    """Return a mark for each path of a place; none without the legacy network's own."""
    inside = inside.dropna(subset=["macs"])
    legacy = inside[~inside[PATH].str.contains("1")]
    if legacy.empty:
        return []
    macs, latency = float(legacy["macs"].iloc[0]), float(legacy["latency_s"].iloc[0])
    ordered = inside.sort_values("macs", kind="stable")
    return [
        {
            "p": int(line),
            "x": significant(100 * row["macs"] / macs),
            "y": significant(100 * row["latency_s"] / latency),
            "f": row["member"] == IN,
            "fy": None,
            "c": f"batch {row['batch']}",
            "t": f"path {row[PATH]}",
        }
        for line, row in zip(ordered.index, ordered.to_dict("records"), strict=True)
    ]


def _figure(found: pd.DataFrame, panels: list[Panel]) -> Figure:
    batches = sorted({str(batch) for batch in found["batch"]}, key=natural)
    legend = {f"batch {batch}": rgb(*SLOTS[number % len(SLOTS)]) for number, batch in enumerate(batches)}
    whole = "% of the legacy network's"
    spec = charts.scatter(f"multiply-adds, {whole}", f"latency, {whole}", legend, logarithmic=False)
    known = places(found)["correlation"].dropna()
    sentence = "Above the diagonal a path saves less time than multiply-adds; large dots are in a Pareto set."
    if len(known):
        sentence += f" Rank correlations lie between {known.min():.2f} and {known.max():.2f}."
    return Figure(
        "paths", "Latency against multiply-adds, by batch", sentence, panels, {"": spec}, legend, across=3
    )


def _table(context: Context, found: pd.DataFrame) -> Table:
    """Return the Pareto set of each place."""
    rows = found.to_dict("records")
    lines = [
        Line(
            [
                Cell(_called(context, row, PLACE)),
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
                Cell(_called(context, row, [name for name in PLACE if name != row["along"]])),
                Cell(text(row["enter"]) or MISSING),
                Cell(text(row["leave"]) or MISSING),
                Cell(str(row["open"])),
            ],
            context.filters({name: row[name] for name in PLACE if name not in (NETWORK, row["along"])}),
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


def _called(context: Context, row: Any, names: Any) -> str:
    """Return a place as text: its network, and the values of axes that vary."""
    others = context.called(row, [name for name in names if name != NETWORK])
    return " · ".join(piece for piece in (str(row[NETWORK]), others) if piece != "all")
