"""The lines of a grid.

They are not written with rich's own table, which measures and wraps every cell: over thousands of lines
that takes ten times as long, and the widths are known already.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rich.cells import cell_len, chop_cells
from rich.segment import Segment
from rich.style import Style

from dlas.face.console.cells import GAP, GridCell, GridColumn
from dlas.face.console.fitting import total_width


def line_of(
    columns: Sequence[GridColumn], cells: Sequence[GridCell], widths: Sequence[int]
) -> Iterator[Segment]:
    """Yield one line of cells, as high as its highest cell."""
    blocks = [_folded(cell.text, width) for cell, width in zip(cells, widths, strict=True)]
    for line in range(max(map(len, blocks))):
        gap = 0
        for column, cell, block, width in zip(columns, cells, blocks, widths, strict=True):
            text = block[line] if line < len(block) else ""
            room = width - cell_len(text)
            if text:
                yield Segment(" " * (gap + (0 if column.name else room)))
                yield Segment(text, Style.parse(cell.style))
            gap = (0 if text else gap + width) + GAP + (room if text and column.name else 0)
        yield Segment.line()


def _folded(text: str, width: int) -> list[str]:
    """Return a cell's lines, none wider than ``width``."""
    lines = text.split("\n")
    if all(cell_len(line) <= width for line in lines):
        return lines
    return [piece for line in lines for piece in chop_cells(line, width)]


def header_of(columns: Sequence[GridColumn], widths: Sequence[int]) -> Iterator[Segment]:
    """Yield the headers, aligned at their last lines, and a rule."""
    height = max(column.header.text.count("\n") for column in columns)
    padded = ["\n" * (height - column.header.text.count("\n")) + column.header.text for column in columns]
    yield from line_of(columns, [GridCell(text, "bold") for text in padded], widths)
    yield Segment("─" * total_width(widths))
    yield Segment.line()
