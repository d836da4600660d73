"""Aligned columns that fit the width they are given, with a headline and notes.

A grid too wide for the terminal first moves what several lines share into
headings above them, then leaves out its least important columns and says which,
then puts long cells on two lines, then folds names, then continues in further
tables.  No cell is ever cut off.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field, replace

from rich.cells import cell_len, chop_cells
from rich.console import Console, ConsoleOptions, RenderableType, RenderResult
from rich.measure import Measurement
from rich.segment import Segment
from rich.style import Style
from rich.text import Text

from dlas.rows.labels import points, shortened

GAP = 2
"""Spaces between columns."""
NARROWEST = 14
"""A column of names is folded to no fewer characters."""
COLOURS = {"ok": "green", "failed": "red", "timeout": "red", "wrong": "red", "unsupported": "yellow"}
NOISY = "~"
"""Stands behind a time that was measured on a disturbed machine."""
UNLIMITED = 100_000


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


@dataclass
class Notes:
    """Reasons, each told once under the grid and referred to by its number."""

    found: dict[tuple[str, str], list[int]] = field(default_factory=dict)

    def mark(self, status: str, reason: str | None, counted: bool = True) -> str:
        """Return the status with its reason's number, ``failed (1)``, and count one point more for it."""
        if not reason:
            return status
        note = self.found.setdefault((status, shortened(reason)), [len(self.found) + 1, 0])
        note[1] += counted
        return f"{status} ({note[0]})"

    def lines(self) -> list[Text]:
        """Return a line a reason: number, status, how many points, and the reason."""
        return [
            Text.assemble(f"({number}) ", (status, COLOURS.get(status, "")), f", {points(count)}: {reason}")
            for (status, reason), (number, count) in self.found.items()
        ]


@dataclass
class Grid:
    """Columns with what is said above and below them.

    Parameters
    ----------
    columns : list of GridColumn
    breaks : set of int
        Lines after which an empty one is left.
    above, below : list of Text
    summary : str or None
        Name of the last line, which holds every column's ``summary``; the first
        column's is the name itself.
    """

    columns: list[GridColumn]
    breaks: AbstractSet[int] = frozenset()
    above: Sequence[Text] = ()
    below: Sequence[Text] = ()
    summary: str | None = None

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        yield from self.above
        dropped: list[str] = []
        if self.columns and self.columns[0].cells:
            headings, columns, dropped = _fitted(self.columns, options.max_width)
            yield from self._tables(headings, columns, options.max_width)
        if self.below or dropped:
            yield Text()
        yield from self.below
        if dropped:
            yield Text(f"left out for want of width: {', '.join(dropped)}", style="dim")

    def __rich_measure__(self, console: Console, options: ConsoleOptions) -> Measurement:
        lines = [line.cell_len for text in (*self.above, *self.below) for line in text.split()]
        widest = max([_total([column.width for column in self.columns]), *lines])
        return Measurement(min(widest, options.max_width), min(widest, options.max_width))

    def _tables(self, headings: list[GridColumn], columns: list[GridColumn], width: int) -> RenderResult:
        """Yield the lines as one table, or as one a heading, each in as many pieces as it takes."""
        for piece in _pieces(columns, width):
            widths = _widths(piece, width)
            for heading, lines in _sections(headings, len(columns[0].cells)):
                yield Segment.line()
                if heading:
                    yield Text(heading, style="bold")
                yield from _header(piece, widths)
                for line in lines:
                    yield from _line(piece, [column.cells[line] for column in piece], widths)
                    if line in self.breaks and not headings:
                        yield Segment.line()
            if self.summary:
                yield Segment.line()
                if headings:
                    yield Text(self.summary, style="bold")
                    yield from _header(piece, widths)
                yield from _line(piece, [column.summary for column in piece], widths)


def print_whole(console: Console, renderable: RenderableType) -> None:
    """Print at the terminal's width; elsewhere as wide as it takes, so that nothing is folded or left out."""
    if not console.is_terminal:
        options = console.options.update(max_width=UNLIMITED)
        console.width = max(console.width, Measurement.get(console, options, renderable).maximum)
    console.print(renderable, highlight=False)


# ---------------------------------------------------------------- fitting


def _narrowed(cell: GridCell) -> GridCell:
    return replace(cell, text=cell.two_lines or cell.text)


def _total(widths: Sequence[int]) -> int:
    return sum(widths) + GAP * (len(widths) - 1)


def _fitted(columns: list[GridColumn], width: int) -> tuple[list[GridColumn], list[GridColumn], list[str]]:
    """Return the columns that become headings, those that stay, and the headers of those left out."""
    headings: list[GridColumn] = []
    while _total([column.width for column in columns]) > width:
        shared = [column for column in columns if column.shared]
        if not shared or sum(column.name for column in columns) < 2:
            break
        headings.append(shared[0])
        columns = [column for column in columns if column is not shared[0]]
    kept, dropped = _dropped(columns, width, fold=False)
    if _total([column.width for column in kept]) > width:
        # Leaving columns out does not keep each point on one line, so the least is left out on two.
        kept, dropped = _dropped([column.narrowed() for column in columns], width, fold=True)
    return headings, kept, dropped


def _dropped(columns: list[GridColumn], width: int, fold: bool) -> tuple[list[GridColumn], list[str]]:
    """Return the columns without the least important, as many as it takes, and the headers of those."""
    headers: list[str] = []
    while any(column.drop for column in columns):
        if _total([column.least if fold else column.width for column in columns]) <= width:
            break
        least = max(columns, key=lambda column: column.drop)
        columns = [column for column in columns if column is not least]
        headers.append(least.header.text)
    return columns, headers


def _pieces(columns: list[GridColumn], width: int) -> list[list[GridColumn]]:
    """Return the columns as they are spread over tables, each of which repeats the names."""
    repeated = [column for column in columns if column.name]
    pieces: list[list[GridColumn]] = [[*repeated]]
    for column in (column for column in columns if not column.name):
        used = _total([each.least for each in (*pieces[-1], column)])
        if used > width and len(pieces[-1]) > len(repeated):
            pieces.append([*repeated])
        pieces[-1].append(column)
    return pieces


def _widths(columns: list[GridColumn], width: int) -> list[int]:
    """Return the columns' widths, the widest names folded first where there is too little room."""
    widths = [column.width for column in columns]
    while _total(widths) > width:
        foldable = [i for i, column in enumerate(columns) if widths[i] > column.least]
        if not foldable:
            break
        widths[max(foldable, key=lambda i: widths[i])] -= 1
    return widths


def _sections(headings: list[GridColumn], count: int) -> list[tuple[str, list[int]]]:
    """Return the lines under each heading, in the order in which headings first appear."""
    sections: dict[str, list[int]] = {}
    for line in range(count):
        told = ", ".join(f"{column.header.text} {column.cells[line].text}" for column in headings)
        sections.setdefault(told, []).append(line)
    return list(sections.items())


# ---------------------------------------------------------------- lines
#
# Written here and not by rich's own table: the widths are known already, and over thousands of lines its
# measuring and wrapping of every cell takes ten times as long.


def _line(
    columns: Sequence[GridColumn], cells: Sequence[GridCell], widths: Sequence[int]
) -> Iterator[Segment]:
    """Yield one line of cells, on as many lines of the page as the highest of them takes."""
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


def _header(columns: Sequence[GridColumn], widths: Sequence[int]) -> Iterator[Segment]:
    """Yield the headers, their last lines level, and a rule."""
    height = max(column.header.text.count("\n") for column in columns)
    sunk = ["\n" * (height - column.header.text.count("\n")) + column.header.text for column in columns]
    yield from _line(columns, [GridCell(text, "bold") for text in sunk], widths)
    yield Segment("─" * _total(widths))
    yield Segment.line()
