"""What a search found: its winners, what was estimated of them and what was measured."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import RenderableType
from rich.text import Text

from dlas.face.console.cells import GridCell, GridColumn, names
from dlas.face.console.grid import Grid
from dlas.prediction.adaptive.evolution.record import SearchRecord, effort, keeps_in_words, kept
from dlas.sweep.rows.labels import MISSING, shown_in


def table(record: SearchRecord) -> RenderableType:
    """Return the winners of a search, a line each."""
    asked, winners = record.asked, record.winners
    columns = [
        names("winner", [each.label for each in winners]),
        _column("score", [f"{each.score:.5g}" for each in winners]),
    ]
    bounds = []
    for name, most in asked.within.items():
        words, unit, scale = shown_in(name)
        costs = [each.costs[name] for each in winners]
        told = [MISSING if each.measured is None else f"{scale * each.measured:.4g}" for each in costs]
        columns += [
            _column(f"{words}, {unit}".rstrip(", "), [f"{scale * each.value:.4g}" for each in costs]),
            _column("at most", [f"{scale * each.high:.4g}" for each in costs]),
            _column("measured", told),
        ]
        bounds.append(f"{words} within {scale * most:.4g} {unit}".rstrip())
    columns.append(_column("keeps it", [keeps_in_words(each, asked.within) for each in winners]))
    title = Text(f"best score by {asked.maximise}, {' and '.join(bounds)}", style="bold")
    return Grid(columns, above=[title], below=[Text(line) for line in notes(record)])


def notes(record: SearchRecord) -> list[str]:
    """Return what a search came to, a line each."""
    return [line for line in (effort(record), kept(record)) if line]


def _column(header: str, texts: Sequence[str]) -> GridColumn:
    return GridColumn(GridCell(header), [GridCell(text) for text in texts])
