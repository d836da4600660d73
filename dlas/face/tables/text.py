"""Tables as text that fits the terminal's width, with lines above and below.

A table that is too wide for the terminal first moves values that lines share into
headings, then leaves out its least important columns and names them, then puts long
cells on two lines, then folds names, then continues in further tables.  No cell is
ever cut off.

The lines are not written with rich's own table, which measures and wraps every cell: over thousands of
lines that takes ten times as long, and the widths are known already.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from rich.cells import cell_len
from rich.console import Console, ConsoleOptions, RenderableType, RenderResult
from rich.measure import Measurement
from rich.segment import Segment
from rich.style import Style
from rich.text import Text

from dlas.face.tables.columns import Strip
from dlas.face.tables.fitting import (
    GAP,
    fitted,
    folded,
    pieces,
    runs_on,
    sections,
    strips_of,
    total_width,
    widths_at,
    widths_within,
)
from dlas.face.tables.marks import STYLES
from dlas.face.tables.table import Cell, Table

UNLIMITED = 100_000


@dataclass(frozen=True)
class Grid:
    """A table with lines of text above and below it, for the terminal."""

    table: Table
    above: Sequence[Text] = ()
    below: Sequence[Text] = ()

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        yield from self.above
        dropped: list[str] = []
        if self.table.lines:
            headings, strips, dropped = fitted(strips_of(self.table), options.max_width)
            yield from self._tables(headings, strips, options.max_width)
        if self.below or dropped:
            yield Text()
        yield from self.below
        if dropped:
            yield Text(f"left out for want of width: {', '.join(dropped)}", style="dim")

    def __rich_measure__(self, console: Console, options: ConsoleOptions) -> Measurement:
        lines = [line.cell_len for text in (*self.above, *self.below) for line in text.split()]
        strips = strips_of(self.table)
        widths = widths_at(strips)
        widest = min(max([total_width(widths), _end(strips, widths), *lines]), options.max_width)
        return Measurement(widest, widest)

    def _tables(self, headings: list[Strip], strips: list[Strip], width: int) -> RenderResult:
        """Yield the lines as one table, or as one for each heading, split to fit the width."""
        for piece in pieces(strips, width):
            widths = widths_within(piece, width)
            for heading, lines in sections(headings, len(self.table.lines)):
                yield Segment.line()
                if heading:
                    yield Text(heading, style="bold")
                yield from _header(piece, widths)
                for line in lines:
                    yield from _line(piece, line, widths, width)
                    if self.table.lines[line].last and not headings and line != lines[-1]:
                        yield Segment.line()
            if self.table.summary:
                yield Segment.line()
                if headings:
                    yield Text(self.table.summary[0].text, style="bold")
                    yield from _header(piece, widths)
                yield from _cells(piece, [strip.summary for strip in piece], widths)


def titled(table: Table, *below: Text) -> Grid:
    """Return a table below its caption."""
    return Grid(table, [Text(table.caption, style="bold")], below)


def print_whole(console: Console, renderable: RenderableType) -> None:
    """Print at the terminal's width, or without a terminal at full width, where everything fits."""
    if not console.is_terminal:
        options = console.options.update(max_width=UNLIMITED)
        console.width = max(console.width, Measurement.get(console, options, renderable).maximum)
    console.print(renderable, highlight=False)


def _header(strips: Sequence[Strip], widths: Sequence[int]) -> Iterator[Segment]:
    """Yield the headers, aligned at their last lines, and a rule."""
    titles = [strip.column.title for strip in strips]
    height = max(title.count("\n") for title in titles)
    padded = ["\n" * (height - title.count("\n")) + title for title in titles]
    yield from _cells(strips, [Cell(title, style="head") for title in padded], widths)
    yield Segment("─" * total_width(widths))
    yield Segment.line()


def _line(strips: Sequence[Strip], line: int, widths: Sequence[int], width: int) -> Iterator[Segment]:
    """Yield one line; a sentence runs on over columns behind it that are empty."""
    last = next((at for at in range(len(strips)) if runs_on(strips, at, line)), None)
    if last is not None:
        strips = strips[: last + 1]
        widths = [*widths[:last], width - sum(widths[:last]) - GAP * last]
    yield from _cells(strips, [strip.cells[line] for strip in strips], widths)


def _cells(strips: Sequence[Strip], cells: Sequence[Cell], widths: Sequence[int]) -> Iterator[Segment]:
    """Yield one line of cells, as high as its highest cell."""
    blocks = [
        folded(cell.text, width, strip.column.wide)
        for strip, cell, width in zip(strips, cells, widths, strict=True)
    ]
    for line in range(max(map(len, blocks))):
        gap = 0
        for strip, cell, block, width in zip(strips, cells, blocks, widths, strict=True):
            text = block[line] if line < len(block) else ""
            room, left = width - cell_len(text), not strip.column.number
            if text:
                yield Segment(" " * (gap + (0 if left else room)))
                yield Segment(text, Style.parse(STYLES.get(cell.style, "")))
            gap = (0 if text else gap + width) + GAP + (room if text and left else 0)
        yield Segment.line()


def _end(strips: Sequence[Strip], widths: Sequence[int]) -> int:
    """Return where the longest sentence ends that runs on."""
    ends = [
        sum(widths[:at]) + GAP * at + cell_len(cell.text)
        for at, strip in enumerate(strips)
        if strip.column.wide
        for line, cell in enumerate(strip.cells)
        if runs_on(strips, at, line)
    ]
    return max(ends, default=0)
