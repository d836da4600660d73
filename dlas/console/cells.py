"""Cells and columns of a grid."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from rich.cells import cell_len

GAP = 2
"""Spaces between columns."""
NARROWEST = 14
"""A column of names is folded to no fewer characters."""
COLOURS = {"ok": "green", "failed": "red", "timeout": "red", "wrong": "red", "unsupported": "yellow"}
NOISY = "~"
"""Stands behind a time that was measured on a disturbed machine."""


@dataclass(frozen=True)
class GridCell:
    """What stands in one place of a grid; ``two_lines`` is what replaces it where width is short."""

    text: str
    style: str = ""
    two_lines: str | None = None


@dataclass
class GridColumn:
    """One column.

    Parameters
    ----------
    header : GridCell
    cells : list of GridCell
    name : bool
        Whether it holds names: aligned left, and repeated where the grid
        continues in a further table.
    shared : bool
        Whether, where width is short, its values may become headings.
    drop : int
        The column with the highest number is left out first; 0 is never left out.
    summary : GridCell
        What stands in the last line, where the grid has one.
    """

    header: GridCell
    cells: list[GridCell]
    name: bool = False
    shared: bool = False
    drop: int = 0
    summary: GridCell = GridCell("")

    @property
    def width(self) -> int:
        """Characters of the widest line."""
        cells = (self.header, *self.cells, self.summary)
        return max(cell_len(line) for cell in cells for line in cell.text.split("\n"))

    @property
    def least(self) -> int:
        """Characters that it can do with."""
        return min(self.width, NARROWEST) if self.name else self.width

    def narrowed(self) -> GridColumn:
        """Return the column with the cells that have a second line using it."""
        return replace(
            self,
            header=_narrowed(self.header),
            cells=[_narrowed(cell) for cell in self.cells],
            summary=_narrowed(self.summary),
        )


def names(header: str, texts: Sequence[str], shared: bool = False) -> GridColumn:
    """Return a column of names; where width is short, they break before their options."""
    cells = [GridCell(text, two_lines=text.replace("(", "\n(").replace("+", "\n+")) for text in texts]
    return GridColumn(GridCell(header), cells, name=True, shared=shared)


def _narrowed(cell: GridCell) -> GridCell:
    return replace(cell, text=cell.two_lines or cell.text)
