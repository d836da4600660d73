"""Numbers as READMEs write them, each with the comment that says where it is from."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

from benchmarks.recomputed.markdown import claims, numbers, tables
from benchmarks.recomputed.studies import readme

RECOMPUTED, EVALUATED, LOST = "kept rows", "kept rows, fitted by its command", "no rows"
"""What a number rests on: rows that a test recomputes it from; rows whose predictors take a test too long
to fit; a run whose rows are not kept."""


@dataclass(frozen=True)
class Number:
    """A number of a README."""

    written: str
    basis: str = RECOMPUTED
    """One of :data:`RECOMPUTED`, :data:`EVALUATED` and :data:`LOST`."""

    def __float__(self) -> float:
        return float(self.written.replace(",", ""))

    def __str__(self) -> str:
        return self.written


@cache
def _text(study: str) -> str:
    return readme(study).read_text(encoding="utf-8")


def claimed(study: str, function: str, *words: str) -> Number:
    """Return a number in a sentence, by the function in its comment."""
    found = [each for each in claims(_text(study)) if (each.function, each.words) == (function, words)]
    assert found, f"{study} has no number of {function}{words}"
    return Number(found[0].written)


def cell(study: str, source: str, column: str, basis: str = RECOMPUTED, **labels: str) -> Number:
    """Return the first number of a cell.

    Parameters
    ----------
    source : str
        The table's function, or the start of its command.
    labels : str
        Cells by column that choose the line; ``_`` in a column's name is a space.
    """
    chosen = {name.replace("_", " "): value for name, value in labels.items()}
    found = [
        (row[column], table.function)
        for table in tables(_text(study))
        if table.function == source or (table.command and table.command.startswith(source))
        for row in table.rows
        if column in row and all(row.get(name) == value for name, value in chosen.items())
    ]
    assert len(found) == 1, f"{study}: {len(found)} lines of {source} with {chosen}"
    text, function = found[0]
    return Number(numbers(text)[0], basis if function else LOST)
