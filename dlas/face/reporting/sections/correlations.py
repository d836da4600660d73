"""Whether multiply-adds, parameters, accuracy and latency rank networks alike."""

from __future__ import annotations

from typing import Any

from dlas.analysis.correlations import FEWEST, QUANTITIES, STRONG, strength
from dlas.analysis.matching import PLACE
from dlas.face.reporting import charts
from dlas.face.reporting.blocks import Absent, Figure, Panel, Section
from dlas.face.reporting.context import Context, significant
from dlas.face.reporting.palette import HUES, rgb
from dlas.face.tables.table import Cell, Column, Line, Table, columns_of, numbers_of
from dlas.sweep.rows.labels import MISSING

MARK = "rank correlation"


def section(context: Context) -> Section | Absent:
    """Return the rank correlation of each pair of quantities, in each place."""
    title = "Rank correlations"
    ranked = context.evidence.correlations.to_dict("records")
    if all(row["missing"] for row in ranked):
        return Absent(title, f"{FEWEST} networks in one place, with two of {', '.join(QUANTITIES.values())}")
    lead = "Whether multiply-adds, parameters, accuracy and latency rank networks alike."
    return Section("correlations", title, lead, [_figure(context, ranked), _table(context, ranked)])


def _figure(context: Context, ranked: list[dict[Any, Any]]) -> Figure:
    correlated = [row for row in ranked if not row["missing"]]
    places: dict[str, list[dict[str, Any]]] = {}
    for row in correlated:
        places.setdefault(context.called(row, PLACE), []).append(_mark(row))
    strong = sum(strength(row["low"], row["high"]) == "strong" for row in correlated)
    sentence = (
        "The further from the dashed line, the better one quantity predicts the ranking by the other: "
        f"{strong} of {len(correlated)} correlations are strong."
    )
    spec = charts.intervals(
        "Spearman's rank correlation",
        {MARK: rgb(*HUES[0])},
        logarithmic=False,
        reference=0,
        grouped=False,
        domain=(-1, 1),
    )
    panels = [Panel(place if len(places) > 1 else "", rows) for place, rows in places.items()]
    return Figure(
        "rank-correlations", "Spearman's rank correlations", sentence, panels, {"": spec}, filtered=False
    )


def _mark(row: dict[Any, Any]) -> dict[str, Any]:
    return {
        "y": _pair(row),
        "c": MARK,
        "x": significant(row["correlation"]),
        "s": "",
        "n": False,
        "lo": significant(row["low"]),
        "hi": significant(row["high"]),
        "t": f"{_pair(row)}: {_in_words(row)}",
    }


def _table(context: Context, ranked: list[dict[Any, Any]]) -> Table:
    lines = []
    for row in ranked:
        verdict = MISSING if row["missing"] else strength(row["low"], row["high"])
        interval = Cell(row["missing"], style="muted") if row["missing"] else Cell(_in_words(row))
        cells = [
            Cell(context.called(row, PLACE)),
            Cell(_pair(row)),
            interval,
            Cell(str(row["networks"])),
            Cell(verdict),
        ]
        lines.append(Line(cells, context.filters({name: row[name] for name in PLACE})))
    columns = [
        *columns_of("place", "quantities"),
        *numbers_of("correlation [95 % interval]", "networks"),
        Column("strength"),
    ]
    caption = (
        "Rank correlations over networks (a model under a compression, at its fastest). Strong: the whole "
        f"interval is {STRONG} or more in magnitude; weak: all of it is less; open: neither. Networks "
        "without a time are left out."
    )
    return Table("correlations", caption, columns, lines, names=2)


def _pair(row: dict[Any, Any]) -> str:
    return f"{QUANTITIES[row['first']]} and {QUANTITIES[row['second']]}"


def _in_words(row: dict[Any, Any]) -> str:
    return f"{row['correlation']:.2f} [{row['low']:.2f}, {row['high']:.2f}]"
