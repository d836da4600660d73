"""What a report is made of: sections of paragraphs, tables and figures, before any of it is HTML."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

Where = Mapping[str, str]
"""Values of axes; a filter that wants another value of one of them hides what has it."""


@dataclass(frozen=True)
class Cell:
    """One place of a table.

    Parameters
    ----------
    text : str
    note : str
        Smaller, behind it.
    point : int, optional
        The line of the frame that it stands for, shown on a click.
    style : str
        ``best``, ``tie``, ``good``, ``bad``, ``muted``, or nothing.
    colours : tuple of str
        Of the parts it names, in the order of the names.
    """

    text: str
    note: str = ""
    point: int | None = None
    style: str = ""
    colours: tuple[str, ...] = ()

    @property
    def plain(self) -> str:
        """The text with its note, for tables outside the page."""
        return f"{self.text} ({self.note})" if self.note and self.text else self.text or self.note


@dataclass(frozen=True)
class Column:
    """A column's header; ``group`` stands above those next to each other that share it.

    A column is of numbers, of names, or ``wide``: of sentences, which may wrap.
    """

    header: str
    group: str = ""
    number: bool = False
    wide: bool = False

    @property
    def kind(self) -> str:
        """``number``, ``wide`` or nothing."""
        return "number" if self.number else "wide" if self.wide else ""


@dataclass(frozen=True)
class Line:
    """One line of a table; ``where`` says which filters concern it."""

    cells: Sequence[Cell]
    where: Where = field(default_factory=dict)


@dataclass(frozen=True)
class Table:
    """A table, on the page and as a file.

    Parameters
    ----------
    name : str
        Of its files.
    caption : str
        What it shows, with what a reader has to know of it.
    columns : sequence of Column
    lines : sequence of Line
    names : int
        Columns from the left that name a line.
    """

    name: str
    caption: str
    columns: Sequence[Column]
    lines: Sequence[Line]
    names: int = 1

    @property
    def groups(self) -> list[tuple[str, int]]:
        """The groups above the columns and how many columns each spans; empty where there are none."""
        spans: list[tuple[str, int]] = []
        for column in self.columns:
            if spans and spans[-1][0] == column.group:
                spans[-1] = (column.group, spans[-1][1] + 1)
            else:
                spans.append((column.group, 1))
        return spans if any(name for name, _ in spans) else []


@dataclass(frozen=True)
class Panel:
    """One of a figure's small multiples.

    Parameters
    ----------
    title : str
    rows : list of dict
        Its data; ``p`` is the line of the frame that a mark stands for.
    variant : str
        Which of the figure's specifications draws it.
    """

    title: str
    rows: list[dict[str, Any]]
    variant: str = ""


@dataclass(frozen=True)
class Figure:
    """Small multiples with one legend.

    Parameters
    ----------
    name : str
        Of its files.
    title : str
    sentence : str
        What to see.
    panels : sequence of Panel
    specs : mapping of str to dict
        Vega-Lite without data, by variant; they read the data ``rows``.
    legend : mapping of str to str
        Colours by label.
    legend_axis : str
        The axis that the legend's labels are values of; a click filters by it.
    filtered : bool
        Whether its marks are points, which filters concern.
    across : int
        Panels beside one another where there is room.
    """

    name: str
    title: str
    sentence: str
    panels: Sequence[Panel]
    specs: Mapping[str, dict[str, Any]]
    legend: Mapping[str, str] = field(default_factory=dict)
    legend_axis: str = ""
    filtered: bool = True
    across: int = 2

    @property
    def labels(self) -> dict[str, str]:
        """The legend's labels that occur, with their colours."""
        there = {row.get("c") for panel in self.panels for row in panel.rows}
        return {label: colour for label, colour in self.legend.items() if label in there}


@dataclass(frozen=True)
class Matrix:
    """All points: compilers and algorithms across, everything else down.

    Parameters
    ----------
    columns : list of (str, str)
        Compiler and algorithm of each column.
    groups : list of (str, list of (str, list of (int or None)))
        Settings, in each the lines with their label, in each a line of the
        frame for every column.
    """

    columns: list[tuple[str, str]]
    groups: list[tuple[str, list[tuple[str, list[int | None]]]]]

    @property
    def compilers(self) -> list[tuple[str, int]]:
        """The compilers above the columns, and how many columns each spans."""
        return [(name, len(list(columns))) for name, columns in itertools.groupby(c for c, _ in self.columns)]


@dataclass(frozen=True)
class Chooser:
    """A place where the layers of one or two points are drawn, which a reader chooses.

    Parameters
    ----------
    figure : Figure
        Drawn as it is until the reader chooses.
    first, second : int or None
        The points chosen at the beginning.
    """

    figure: Figure
    first: int
    second: int | None


@dataclass(frozen=True)
class Paragraph:
    """A paragraph; ``items`` follow it as a list, each with the point it is about, if there is one."""

    text: str = ""
    items: Sequence[tuple[str, int | None]] = ()
    code: str = ""


Block = Paragraph | Table | Figure | Matrix | Chooser


@dataclass(frozen=True)
class Section:
    """One section of the report.

    Parameters
    ----------
    name : str
        Its anchor.
    title, lead : str
        ``lead`` says in a sentence or two what stands here.
    blocks : sequence of Block
    """

    name: str
    title: str
    lead: str
    blocks: Sequence[Block] = ()


@dataclass(frozen=True)
class Absent:
    """A section for which these rows have nothing; ``needs`` says what it would need."""

    title: str
    needs: str
