"""How a grid fits a width: what becomes a heading, what is left out, what is folded, what continues below."""

from __future__ import annotations

from collections.abc import Sequence

from dlas.console.cells import GAP, GridColumn


def total_width(widths: Sequence[int]) -> int:
    """Return the characters that columns of these widths take, with the gaps between them."""
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
        # Leaving columns out does not keep each point on one line, so the least is left out on two.
        shown, dropped = _dropped([column.narrowed() for column in columns], width, fold=True)
    return headings, shown, dropped


def _dropped(columns: list[GridColumn], width: int, fold: bool) -> tuple[list[GridColumn], list[str]]:
    """Return the columns without the least important, as many as it takes, and the headers of those."""
    headers: list[str] = []
    while any(column.drop for column in columns):
        if total_width([column.least if fold else column.width for column in columns]) <= width:
            break
        least = max(columns, key=lambda column: column.drop)
        columns = [column for column in columns if column is not least]
        headers.append(least.header.text)
    return columns, headers


def pieces(columns: list[GridColumn], width: int) -> list[list[GridColumn]]:
    """Return the columns as they are spread over tables, each of which repeats the names."""
    repeated = [column for column in columns if column.name]
    pieces: list[list[GridColumn]] = [[*repeated]]
    for column in (column for column in columns if not column.name):
        used = total_width([each.least for each in (*pieces[-1], column)])
        if used > width and len(pieces[-1]) > len(repeated):
            pieces.append([*repeated])
        pieces[-1].append(column)
    return pieces


def widths_of(columns: list[GridColumn], width: int) -> list[int]:
    """Return the columns' widths, the widest names folded first where there is too little room."""
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
