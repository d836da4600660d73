"""Tables column by column, and numbers in them, with a dash for what is missing."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass
from typing import TypeVar

import pandas as pd

from dlas.face.tables.table import Cell, Column, Line, Table
from dlas.sweep.rows.labels import MISSING, amount

Value = TypeVar("Value")
NOTHING = Cell(MISSING, style="muted")


@dataclass(frozen=True)
class Strip:
    """A column with its cells, from the first line to the last."""

    column: Column
    cells: Sequence[Cell]
    summary: Cell = Cell("")  # noqa: RUF009 - cells do not change
    """Its cell in the line over all others, where the table has one."""

    @property
    def is_empty(self) -> bool:
        """Whether nothing is known of any line."""
        return all(cell.text in (MISSING, "") for cell in self.cells)


def names(header: str, texts: Iterable[str | Cell], shared: bool = False, summary: str = "") -> Strip:
    """Return a column of names; ``shared`` ones may become headings where a terminal is narrow."""
    return Strip(Column(header, shared=shared), _cells(texts), Cell(summary, style="head"))


def numbers(
    header: str, texts: Iterable[str | Cell], group: str = "", drop: int = 0, summary: str = ""
) -> Strip:
    """Return a column that is aligned right; ``drop`` as in :class:`dlas.face.tables.table.Column`."""
    return Strip(Column(header, group, number=True, drop=drop), _cells(texts), Cell(summary, style="head"))


def table_of(
    strips: Sequence[Strip],
    name: str = "",
    caption: str = "",
    last: Collection[int] = (),
) -> Table:
    """Return a table of columns that are equally long.

    Parameters
    ----------
    strips : sequence of Strip
        The columns of names come first.
    name, caption : str
        As of :class:`dlas.face.tables.table.Table`.
    last : collection of int
        The lines that are the last of several that belong together.
    """
    cells = zip(*(strip.cells for strip in strips), strict=True)
    lines = [Line(line, last=number in last) for number, line in enumerate(cells)]
    summary = [strip.summary for strip in strips]
    leading = next((at for at, strip in enumerate(strips) if strip.column.number), len(strips))
    has_summary = any(cell.text for cell in summary)
    columns = [strip.column for strip in strips]
    return Table(name, caption, columns, lines, max(leading, 1), summary if has_summary else ())


def _cells(texts: Iterable[str | Cell]) -> list[Cell]:
    return [Cell(text) if isinstance(text, str) else text for text in texts]


def maybe(value: Value | None, shown: Callable[[Value], object]) -> str:
    """Return a value as text, or a dash where it is None or NaN."""
    return MISSING if value is None or value is pd.NA or value != value else str(shown(value))


def cell_of(value: Value | None, shown: Callable[[Value], str]) -> Cell:
    """Return a value as a cell, with a pale dash where it is missing."""
    text = maybe(value, shown)
    return NOTHING if text == MISSING else Cell(text)


def in_bytes(size: float) -> str:
    """Return a size: ``12.3 MB``."""
    return amount(float(size), "B")


def percent(share: float | None) -> str:
    """Return a share in percent, with a decimal below 10 %."""
    return maybe(share, lambda known: f"{known:.1%}" if known < 0.1 else f"{known:.0%}")


def digits(value: float | None) -> str:
    """Return a number with four digits."""
    return maybe(value, "{:.4g}".format)


def signed(share: float | None) -> str:
    """Return a relative difference in percent, with its sign."""
    return maybe(share, "{:+.1%}".format)


def between(low: float | None, high: float | None) -> str:
    """Return an interval: ``12.3 to 14.1``."""
    return maybe(low, lambda least: f"{least:.4g} to {high:.4g}")


def with_unit(words: str, unit: str) -> str:
    """Return a header: ``latency, ms``, or the words alone where there is no unit."""
    return f"{words}, {unit}" if unit else words
