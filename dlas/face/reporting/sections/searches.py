"""Searches: the front that was found, and what became of the winners."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from dlas.face.reporting import charts
from dlas.face.reporting.blocks import Absent, Block, Figure, Panel, Section
from dlas.face.reporting.context import Context, significant
from dlas.face.reporting.palette import HUES, NEUTRAL, rgb
from dlas.face.tables.columns import with_unit
from dlas.face.tables.searches import winners
from dlas.prediction.adaptive.evolution.record import (
    FoundRecord,
    SearchRecord,
    effort,
    holds_search,
    kept,
    read_search,
)
from dlas.sweep.rows.labels import shown_in

FRONT, WINNERS = "estimated", "winner, measured again"
COLOURS = {FRONT: rgb(*NEUTRAL), WINNERS: rgb(*HUES[0])}


def section(context: Context) -> Section | Absent:
    """Return the front and the winners of each search in the folders of the report."""
    title = "Searches"
    found = [read_search(Path(folder)) for folder in context.folders if holds_search(Path(folder))]
    if not found:
        return Absent(title, "a search: `dlas search STUDY --out FOLDER`")
    lead = (
        "Candidates were drawn, changed and crossed, and their costs estimated. The front holds those with a "
        "higher score than all others that were estimated of at most their cost."
    )
    blocks = [block for number, record in enumerate(found) for block in _blocks(record, str(number))]
    return Section("searches", title, lead, blocks)


def _blocks(record: SearchRecord, name: str) -> list[Block]:
    """Return the figure of a search's front over the first cost, and the table of its winners."""
    asked = record.asked
    quantity = next(iter(asked.within))
    words, unit, factor = shown_in(quantity)
    rows = [_mark(each, factor * each.costs[quantity].value, FRONT) for each in record.front]
    measured = [(each, each.costs[quantity].measured) for each in record.winners]
    rows += [_mark(each, factor * value, WINNERS) for each, value in measured if value is not None]
    bounds = [f"{quantity} ≤ {most:g}" for quantity, most in asked.within.items()]
    sentence = f"For {' and '.join(bounds)}. {effort(record)}. {kept(record)}".strip()
    spec = charts.scatter(with_unit(words, unit), "score", COLOURS, logarithmic=False)
    panels = [Panel("", rows)]
    figure = Figure(f"front-{name}", "The front found", sentence, panels, {"": spec}, COLOURS, filtered=False)
    return [figure, winners(record, f"winners-{name}")]


def _mark(found: FoundRecord, cost: float, kind: str) -> dict[str, Any]:
    """Return a mark of the figure; the front is a line."""
    score = significant(found.score)
    return {
        "x": significant(cost),
        "y": score,
        "fy": score if kind == FRONT else None,
        "f": kind == FRONT,
        "c": kind,
        "t": f"{found.label}: score {found.score:.5g} at {cost:.4g}, {kind}",
    }
