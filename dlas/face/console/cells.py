"""Cells and columns of a grid."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from rich.cells import cell_len

GAP = 2
"""Spaces between columns."""
NARROWEST = 14
"""Least width to which a column of names is folded, in characters."""
COLOURS = {
    "ok": "green",
    "failed": "red",
    "timeout": "red",
    "wrong": "red",
    "unsupported": "yellow",
    "unstable": "yellow",
    "predicted": "cyan",
}
NOISY = "~"
"""Mark of a time that was measured on a disturbed machine."""
PREDICTED_MARK = "≈"
"""Mark of a time that was predicted."""
UNSTABLE_MARK = "?"
"""Mark of a time that is no result, because slices of its measurement differ too much."""


@dataclass(frozen=True)
class GridCell:
    """The text of one cell; ``two_lines`` replaces it where the terminal is narrow."""

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
        Whether it holds names: aligned left, and repeated in each table that the
        grid is split into.
    shared : bool
        Whether its values may become headings where the terminal is narrow.
    drop : int
        The column with the highest number is left out first; those with 0 never are.
    summary : GridCell
        Its cell in the summary line, where the grid has one.
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
        """Least width in characters."""
        return min(self.width, NARROWEST) if self.name else self.width

    def narrowed(self) -> GridColumn:
        """Return the column with its cells on two lines where they can be."""
        return replace(
            self,
            header=_narrowed(self.header),
            cells=[_narrowed(cell) for cell in self.cells],
            summary=_narrowed(self.summary),
        )


def names(header: str, texts: Sequence[str], shared: bool = False) -> GridColumn:
    """Return a column of names, which break before their options where the terminal is narrow."""
    cells = [GridCell(text, two_lines=text.replace("(", "\n(").replace("+", "\n+")) for text in texts]
    return GridColumn(GridCell(header), cells, name=True, shared=shared)


def _narrowed(cell: GridCell) -> GridCell:
    return replace(cell, text=cell.two_lines or cell.text)
