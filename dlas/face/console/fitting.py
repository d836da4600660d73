"""Fitting a grid into a width: columns become headings, are left out, are folded, or continue below."""

from __future__ import annotations

from collections.abc import Sequence

from dlas.face.console.cells import GAP, GridColumn


def total_width(widths: Sequence[int]) -> int:
    """Return the width of columns in characters, including the gaps between them."""
    return sum(widths) + GAP * (len(widths) - 1)


def fitted(columns: list[GridColumn], width: int) -> tuple[list[GridColumn], list[GridColumn], list[str]]:
    """Return the columns that become headings, those that stay, and the headers of those left out."""
    headings: list[GridColumn] = []
    while total_width([column.width for column in columns]) > width:
        shared = [column for column in columns if column.shared]
        if not shared or sum(column.name for column in columns) < 2:
            break
        headings.append(shared[0])
        columns = [column for column in columns if column is not shared[0]]
    shown, dropped = _dropped(columns, width, fold=False)
    if total_width([column.width for column in shown]) > width:
        # Points do not fit on one line however many columns are left out: put cells on two lines instead.
        shown, dropped = _dropped([column.narrowed() for column in columns], width, fold=True)
    return headings, shown, dropped


def _dropped(columns: list[GridColumn], width: int, fold: bool) -> tuple[list[GridColumn], list[str]]:
    """Return the columns that fit, and the headers of the least important ones, which are left out."""
    headers: list[str] = []
    while any(column.drop for column in columns):
        if total_width([column.least if fold else column.width for column in columns]) <= width:
            break
        least = max(columns, key=lambda column: column.drop)
        columns = [column for column in columns if column is not least]
        headers.append(least.header.text)
    return columns, headers


def pieces(columns: list[GridColumn], width: int) -> list[list[GridColumn]]:
    """Return the columns of each table that the grid is split into; each table repeats the names."""
    repeated = [column for column in columns if column.name]
    pieces: list[list[GridColumn]] = [[*repeated]]
    for column in (column for column in columns if not column.name):
        used = total_width([other.least for other in (*pieces[-1], column)])
        if used > width and len(pieces[-1]) > len(repeated):
            pieces.append([*repeated])
        pieces[-1].append(column)
    return pieces


def widths_of(columns: list[GridColumn], width: int) -> list[int]:
    """Return the columns' widths; the widest names are folded first."""
    widths = [column.width for column in columns]
    while total_width(widths) > width:
        foldable = [i for i, column in enumerate(columns) if widths[i] > column.least]
        if not foldable:
            break
        widths[max(foldable, key=lambda i: widths[i])] -= 1
    return widths


def sections(headings: list[GridColumn], count: int) -> list[tuple[str, list[int]]]:
    """Return the lines under each heading, in the order in which headings first appear."""
    sections: dict[str, list[int]] = {}
    for line in range(count):
        heading = ", ".join(f"{column.header.text} {column.cells[line].text}" for column in headings)
        sections.setdefault(heading, []).append(line)
    return list(sections.items())
