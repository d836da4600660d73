"""What a table is, apart from where it is drawn: a terminal, a notebook, the page, a file."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

Where = Mapping[str, str]
"""Values of axes; a filter for another value of one of these axes hides the item."""


@dataclass(frozen=True, slots=True)
class Cell:
    """One cell of a table."""

    text: str
    note: str = ""
    """Small text after it."""
    point: int | None = None
    """The line of the frame that it is about, whose point is shown on a click."""
    style: str = ""
    """``best``, ``tie``, ``good``, ``bad``, ``doubt``, ``muted``, ``head``, ``claim``, the status of a point,
    or nothing.
    """
    colours: tuple[str, ...] = ()
    """Colours of the parts that it names, in their order."""

    @property
    def plain(self) -> str:
        """The text with its note, where there is no small text."""
        return f"{self.text} ({self.note})" if self.note and self.text else self.text or self.note


@dataclass(frozen=True)
class Column:
    """A column's header; adjacent columns with the same ``group`` share a header above theirs."""

    header: str
    group: str = ""
    number: bool = False
    """Whether it holds numbers, aligned right. Others hold names, which are repeated where a terminal is too
    narrow for all columns side by side.
    """
    wide: bool = False
    """Whether it holds sentences, which may wrap."""
    shared: bool = False
    """Whether its values may become headings where a terminal is narrow."""
    drop: int = 0
    """Where a terminal is narrow, the column with the highest number is left out first; those with 0 never
    are.
    """

    @property
    def kind(self) -> str:
        """``number``, ``wide`` or nothing."""
        return "number" if self.number else "wide" if self.wide else ""

    @property
    def title(self) -> str:
        """The header below its group, on a line each."""
        return f"{self.group}\n{self.header}" if self.group else self.header


def columns_of(*headers: str, group: str = "") -> list[Column]:
    """Return columns of names."""
    return [Column(header, group) for header in headers]


def numbers_of(*headers: str, group: str = "") -> list[Column]:
    """Return columns of numbers."""
    return [Column(header, group, number=True) for header in headers]


@dataclass(frozen=True)
class Line:
    """One line of a table."""

    cells: Sequence[Cell]
    where: Where = field(default_factory=dict)
    """Decides which filters hide it."""
    last: bool = False
    """Whether it is the last of several that belong together."""


@dataclass(frozen=True)
class Table:
    """A table, wherever it is drawn."""

    name: str
    """Name of its files."""
    caption: str
    """What it shows, and how to read it."""
    columns: Sequence[Column]
    lines: Sequence[Line]
    names: int = 1
    """Number of columns, from the left, that name a line."""
    summary: Sequence[Cell] = ()
    """A last line, over all others; empty without one."""

    @property
    def groups(self) -> list[tuple[str, int]]:
        """The groups above the columns and the number of columns that each spans; empty without groups."""
        spans: list[tuple[str, int]] = []
        for column in self.columns:
            if spans and spans[-1][0] == column.group:
                spans[-1] = (column.group, spans[-1][1] + 1)
            else:
                spans.append((column.group, 1))
        return spans if any(name for name, _ in spans) else []
