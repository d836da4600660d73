"""What a search found: its winners, what was estimated of them and what was measured."""

from __future__ import annotations

from rich.text import Text

from dlas.face.tables.columns import digits, names, numbers, table_of, with_unit
from dlas.face.tables.table import Table
from dlas.face.tables.text import Grid
from dlas.prediction.adaptive.evolution.record import SearchRecord, effort, keeps_in_words, kept
from dlas.sweep.rows.labels import shown_in


def winners(record: SearchRecord, name: str = "winners") -> Table:
    """Return what was estimated and measured of the winners of a search, a line each."""
    within, found = record.asked.within, record.winners
    strips = [
        names("winner", [each.label for each in found]),
        numbers("score", [f"{each.score:.5g}" for each in found]),
    ]
    for quantity in within:
        words, unit, factor = shown_in(quantity)
        costs, group = [each.costs[quantity] for each in found], with_unit(words, unit)
        for header, values in (
            ("estimated", [cost.value for cost in costs]),
            ("at most", [cost.high for cost in costs]),
            ("measured", [cost.measured for cost in costs]),
        ):
            shown = [digits(None if value is None else factor * value) for value in values]
            strips.append(numbers(header, shown, group))
    strips.append(numbers("keeps the bounds", [keeps_in_words(each, within) for each in found]))
    return table_of(strips, name, "The best candidates, the highest score first.")


def listing(record: SearchRecord) -> Grid:
    """Return the winners of a search below what was asked, and above what it came to."""
    bounds = []
    for name, most in record.asked.within.items():
        words, unit, scale = shown_in(name)
        bounds.append(f"{words} within {scale * most:.4g} {unit}".rstrip())
    title = Text(f"best score by {record.asked.maximise}, {' and '.join(bounds)}", style="bold")
    return Grid(winners(record), [title], [Text(line) for line in (effort(record), kept(record)) if line])
