"""Fitting a table into a width: columns become headings, are left out, are folded, or continue below."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from rich.cells import cell_len, chop_cells

from dlas.face.tables.columns import Strip
from dlas.face.tables.table import Cell, Table

GAP = 2
"""Spaces between columns."""
NARROWEST = 14
"""Least width to which a column of names or sentences is folded, in characters."""
NARROWEST_OF_ALL = 4
"""The same where nothing else helps."""


def strips_of(table: Table) -> list[Strip]:
    """Return the columns of a table, with the notes of cells beside their texts, and each group once."""
    columns, before = [], ""
    for column in table.columns:
        columns.append(replace(column, group="" if column.group == before else column.group))
        before = column.group
    cells = [[_plain(line.cells[at]) for line in table.lines] for at in range(len(columns))]
    summary = table.summary or [Cell("")] * len(columns)
    return [Strip(*strip) for strip in zip(columns, cells, summary, strict=True)]


def _plain(cell: Cell) -> Cell:
    return cell if not cell.note else Cell(cell.plain, style=cell.style)


def runs_on(strips: Sequence[Strip], at: int, line: int) -> bool:
    """Return whether a sentence runs on over the columns behind its own, which its line leaves empty."""
    if not strips[at].column.wide or at + 1 == len(strips):
        return False
    return not any(strip.cells[line].text for strip in strips[at + 1 :])


def width_of(strip: Strip, behind: Sequence[Strip] = ()) -> int:
    """Return the characters of a column's widest line, but for sentences that run on over those behind it."""
    strips = [strip, *behind]
    cells = (cell.text for line, cell in enumerate(strip.cells) if not runs_on(strips, 0, line))
    texts = (strip.column.title, strip.summary.text, *cells)
    return max(cell_len(line) for text in texts for line in text.split("\n"))


def least_of(strip: Strip, width: int, narrowest: int = NARROWEST) -> int:
    """Return the least width in characters of a column that is so wide."""
    return width if strip.column.number else min(width, narrowest)


def widths_at(strips: Sequence[Strip]) -> list[int]:
    """Return how wide columns are before any is folded."""
    return [width_of(strip, strips[at + 1 :]) for at, strip in enumerate(strips)]


def total_width(widths: Sequence[int]) -> int:
    """Return the width of columns in characters, including the gaps between them."""
    return sum(widths) + GAP * (len(widths) - 1)


def _needed(strips: Sequence[Strip], fold: bool) -> int:
    """Return the width that columns need at least: sentences wrap at any time, names if they may fold."""
    return total_width(
        [
            least_of(strip, width) if fold or strip.column.wide else width
            for strip, width in zip(strips, widths_at(strips), strict=True)
        ]
    )


def fitted(strips: list[Strip], width: int) -> tuple[list[Strip], list[Strip], list[str]]:
    """Return the columns that become headings, those that stay, and the headers of those left out."""
    headings: list[Strip] = []
    while _needed(strips, fold=False) > width:
        shared = [strip for strip in strips if strip.column.shared]
        if not shared or sum(not strip.column.kind for strip in strips) < 2:
            break
        headings.append(shared[0])
        strips = [strip for strip in strips if strip is not shared[0]]
    shown, dropped = _dropped(strips, width, fold=False)
    if _needed(shown, fold=False) > width:
        # Points do not fit on one line however many columns are left out: put cells on two lines instead.
        shown, dropped = _dropped([_narrowed(strip) for strip in strips], width, fold=True)
    return headings, shown, dropped


def _dropped(strips: list[Strip], width: int, fold: bool) -> tuple[list[Strip], list[str]]:
    """Return the columns that fit, and the headers of the least important ones, which are left out."""
    headers: list[str] = []
    while any(strip.column.drop for strip in strips) and _needed(strips, fold) > width:
        least = max(strips, key=lambda strip: strip.column.drop)
        strips = [strip for strip in strips if strip is not least]
        headers.append(least.column.title.replace("\n", " "))
    return strips, headers


def _narrowed(strip: Strip) -> Strip:
    """Return a column with its cells on two lines where they can be."""
    number, column = strip.column.number, strip.column
    titled = replace(column, group=_broken(column.group, False), header=_broken(column.header, number))
    cells = [replace(cell, text=_broken(cell.text, number)) for cell in strip.cells]
    return Strip(titled, cells, replace(strip.summary, text=_broken(strip.summary.text, number)))


def _broken(text: str, number: bool) -> str:
    """Return a number with its interval or its note on a line of its own, a name with its options."""
    if number:
        return text.replace(" interval]", "]").replace(" [", "\n[").replace(" (", "\n(")
    return text.replace("(", "\n(").replace("+", "\n+")


def pieces(strips: list[Strip], width: int) -> list[list[Strip]]:
    """Return the columns of each table that a table is split into; each repeats the names."""
    repeated = [strip for strip in strips if not strip.column.kind]
    pieces: list[list[Strip]] = [[*repeated]]
    for strip in (strip for strip in strips if strip.column.kind):
        if _needed([*pieces[-1], strip], fold=True) > width and len(pieces[-1]) > len(repeated):
            pieces.append([*repeated])
        pieces[-1].append(strip)
    return pieces


def widths_within(strips: Sequence[Strip], width: int) -> list[int]:
    """Return the columns' widths; the widest sentences are wrapped first, then the widest names folded."""
    widths = widths_at(strips)
    for narrowest in (NARROWEST, NARROWEST_OF_ALL):
        least = [least_of(strip, own, narrowest) for strip, own in zip(strips, widths, strict=True)]
        while total_width(widths) > width and widths != least:
            foldable = [at for at in range(len(strips)) if widths[at] > least[at]]
            widths[max(foldable, key=lambda at: (strips[at].column.wide, widths[at]))] -= 1
    return widths


def folded(text: str, width: int, words: bool = False) -> list[str]:
    """Return the lines of a text, none wider than ``width``, broken between ``words`` where they fit."""
    lines = text.split("\n")
    if all(cell_len(line) <= width for line in lines):
        return lines
    if not words:
        return [piece for line in lines for piece in chop_cells(line, width)]
    wrapped = [""]
    for word in text.split():
        longer = f"{wrapped[-1]} {word}".strip()
        wrapped = [*wrapped[:-1], longer] if cell_len(longer) <= width else [*wrapped, word]
    return [piece for line in wrapped if line for piece in folded(line, width)]


def sections(headings: list[Strip], count: int) -> list[tuple[str, list[int]]]:
    """Return the lines under each heading, in the order in which headings first appear."""
    sections: dict[str, list[int]] = {}
    for line in range(count):
        heading = ", ".join(f"{strip.column.header} {strip.cells[line].text}" for strip in headings)
        sections.setdefault(heading, []).append(line)
    return list(sections.items())
