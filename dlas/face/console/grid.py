"""Aligned columns that fit the terminal's width, with a headline and notes.

A grid that is too wide for the terminal first moves values that lines share into
headings, then leaves out its least important columns and names them, then puts long
cells on two lines, then folds names, then continues in further tables.  No cell is
ever cut off.
"""

from __future__ import annotations

from collections.abc import Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field

from rich.console import Console, ConsoleOptions, RenderableType, RenderResult
from rich.measure import Measurement
from rich.segment import Segment
from rich.text import Text

from dlas.face.console.cells import COLOURS, GridColumn
from dlas.face.console.fitting import fitted, pieces, sections, total_width, widths_of
from dlas.face.console.lines import header_of, line_of
from dlas.sweep.rows.labels import points, shortened

UNLIMITED = 100_000


@dataclass
class Notes:
    """Reasons, each printed once under the grid and referred to by its number."""

    numbers_and_counts: dict[tuple[str, str], list[int]] = field(default_factory=dict)

    def mark(self, status: str, reason: str | None, counted: bool = True) -> str:
        """Return the status with its reason's number, ``failed (1)``, and count one point more for it."""
        if not reason:
            return status
        number = len(self.numbers_and_counts) + 1
        note = self.numbers_and_counts.setdefault((status, shortened(reason)), [number, 0])
        note[1] += counted
        return f"{status} ({note[0]})"

    def lines(self) -> list[Text]:
        """Return a line a reason: number, status, how many points, and the reason."""
        return [
            Text.assemble(f"({number}) ", (status, COLOURS.get(status, "")), f", {points(count)}: {reason}")
            for (status, reason), (number, count) in self.numbers_and_counts.items()
        ]


@dataclass
class Grid:
    """Columns with lines of text above and below them.

    Parameters
    ----------
    columns : list of GridColumn
    breaks : set of int
        Lines that are followed by an empty line.
    above, below : list of Text
    summary : str or None
        Name of the last line, which holds the columns' summaries; it is also the first
        column's summary.
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
            headings, columns, dropped = fitted(self.columns, options.max_width)
            yield from self._tables(headings, columns, options.max_width)
        if self.below or dropped:
            yield Text()
        yield from self.below
        if dropped:
            yield Text(f"left out for want of width: {', '.join(dropped)}", style="dim")

    def __rich_measure__(self, console: Console, options: ConsoleOptions) -> Measurement:
        lines = [line.cell_len for text in (*self.above, *self.below) for line in text.split()]
        widest = max([total_width([column.width for column in self.columns]), *lines])
        return Measurement(min(widest, options.max_width), min(widest, options.max_width))

    def _tables(self, headings: list[GridColumn], columns: list[GridColumn], width: int) -> RenderResult:
        """Yield the lines as one table, or as one for each heading, split to fit the width."""
        for piece in pieces(columns, width):
            widths = widths_of(piece, width)
            for heading, lines in sections(headings, len(columns[0].cells)):
                yield Segment.line()
                if heading:
                    yield Text(heading, style="bold")
                yield from header_of(piece, widths)
                for line in lines:
                    yield from line_of(piece, [column.cells[line] for column in piece], widths)
                    if line in self.breaks and not headings:
                        yield Segment.line()
            if self.summary:
                yield Segment.line()
                if headings:
                    yield Text(self.summary, style="bold")
                    yield from header_of(piece, widths)
                yield from line_of(piece, [column.summary for column in piece], widths)


def print_whole(console: Console, renderable: RenderableType) -> None:
    """Print at the terminal's width, or without a terminal at full width, where everything fits."""
    if not console.is_terminal:
        options = console.options.update(max_width=UNLIMITED)
        console.width = max(console.width, Measurement.get(console, options, renderable).maximum)
    console.print(renderable, highlight=False)
