"""Contents of a report, apart from HTML: sections of paragraphs, tables and figures."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from dlas.face.tables.table import Table


@dataclass(frozen=True)
class Panel:
    """One of a figure's small multiples."""

    title: str
    rows: list[dict[str, Any]]
    """Its data; ``p`` is the line of the frame that a mark shows."""
    variant: str = ""
    """Key of the figure's specification that draws it."""


@dataclass(frozen=True)
class Figure:
    """Small multiples with one legend."""

    name: str
    """Name of its files."""
    title: str
    sentence: str
    """The result that it shows."""
    panels: Sequence[Panel]
    specs: Mapping[str, dict[str, Any]]
    """Vega-Lite without data, by variant; they read the data ``rows``."""
    legend: Mapping[str, str] = field(default_factory=dict)
    """Colours by label."""
    legend_axis: str = ""
    """The axis whose values are the legend's labels; a click filters by it."""
    filtered: bool = True
    """Whether its marks are points, so that filters apply."""
    across: int = 2
    """Most panels side by side."""

    @property
    def labels(self) -> dict[str, str]:
        """The legend's labels that occur, with their colours."""
        present = {row.get("c") for panel in self.panels for row in panel.rows}
        return {label: colour for label, colour in self.legend.items() if label in present}


@dataclass(frozen=True)
class Matrix:
    """All points: compilers and algorithms across, everything else down."""

    columns: list[tuple[str, str]]
    """Compiler and algorithm of each column."""
    groups: list[tuple[str, list[tuple[str, list[int | None]]]]]
    """Settings; their lines, each with a label and, for every column, a line of the frame."""

    @property
    def compilers(self) -> list[tuple[str, int]]:
        """The compilers above the columns, and the number of columns that each spans."""
        return [(name, len(list(columns))) for name, columns in itertools.groupby(c for c, _ in self.columns)]


@dataclass(frozen=True)
class Chooser:
    """A figure of the layers of one or two points that the reader chooses."""

    figure: Figure
    """Drawn until the reader chooses."""
    first: int
    second: int | None
    """The points that are chosen initially."""


@dataclass(frozen=True)
class Paragraph:
    """A paragraph, followed by a list of ``items``, each with the point that it is about, if any."""

    text: str = ""
    items: Sequence[tuple[str, int | None]] = ()
    code: str = ""


Block = Paragraph | Table | Figure | Matrix | Chooser


@dataclass(frozen=True)
class Section:
    """One section of the report."""

    name: str
    """Its anchor."""
    title: str
    lead: str
    """``lead`` introduces the section in a few sentences."""
    blocks: Sequence[Block] = ()


@dataclass(frozen=True)
class Absent:
    """A section that these rows cannot fill; ``needs`` names the missing points."""

    title: str
    needs: str
