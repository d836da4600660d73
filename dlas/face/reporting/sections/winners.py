"""The fastest algorithms and compressions: the paper's Tables 3, 4 and 6."""

from __future__ import annotations

from collections.abc import Callable

from dlas.analysis.matching import natural
from dlas.analysis.winners import Standing, Winner, compressions
from dlas.face.reporting.blocks import Absent, Section
from dlas.face.reporting.context import Context
from dlas.face.tables.columns import NOTHING
from dlas.face.tables.table import Cell, Column, Line, Table, columns_of

MOST_TIED = 3
"""Most names in a cell; further ties are counted."""
NAMES = columns_of("setting", "compiler")
NOTE = "Numbers are milliseconds; “2 of 3” means that one of three points has no time."


def section(context: Context) -> Section | Absent:
    """Return the winner tables, a line for each setting and compiler."""
    title = "Fastest algorithms and compressions"
    if not any(standing.overall.points for standing in context.standings):
        return Absent(title, "a point with a time, of a compiler that takes our algorithms")
    lead = (
        "The fastest algorithm for each compression, the fastest compression for each algorithm, and the "
        "fastest of both, for each setting and compiler; bold is the fastest of its line. Names that share a "
        "cell are a tie: their intervals overlap."
    )
    own = context.points[context.points["tuning"] != "runtime"]
    tables = [_by_compression(context, compressions(own))]
    if own["compression"].nunique() > 1:
        primitives = sorted(own["primitive"].dropna().unique(), key=natural)
        tables.append(_by_primitive(context, primitives))
    return Section("winners", title, lead, tables)


def _by_compression(context: Context, values: list[str]) -> Table:
    columns = [*NAMES, *columns_of(*values, group="fastest algorithm for")]
    if len(values) > 1:
        columns.append(Column("fastest", "of all"))

    def cells(standing: Standing) -> list[Cell]:
        won = [
            _cell(context, standing.by_compression.get(value), ("algorithm",), standing) for value in values
        ]
        if len(values) > 1:
            won.append(_cell(context, standing.overall, ("compression", "algorithm"), standing))
        return won

    caption = f"The fastest algorithm for each compression (the paper's Tables 3, 4 and 6, left). {NOTE}"
    return _table(context, "fastest-algorithm", caption, columns, cells)


def _by_primitive(context: Context, values: list[str]) -> Table:
    columns = [*NAMES, *columns_of(*values, group="fastest compression for")]

    def cells(standing: Standing) -> list[Cell]:
        return [
            _cell(context, standing.by_primitive.get(value), ("compression",), standing, value)
            for value in values
        ]

    caption = (
        "The fastest compression for each algorithm (right in the same tables). An algorithm on another data "
        f"format, such as compressed rows, competes for the algorithm that it is a version of. {NOTE}"
    )
    return _table(context, "fastest-compression", caption, columns, cells)


def _table(
    context: Context, name: str, caption: str, columns: list[Column], cells: Callable[[Standing], list[Cell]]
) -> Table:
    lines = []
    for standing in context.standings:
        # The compiler `untuned` is named after its kind.
        kind = standing.tuning if standing.tuning != standing.compiler else ""
        names = [Cell(context.called(standing.setting)), Cell(standing.compiler, note=kind)]
        where = context.filters({**standing.setting, "compiler": standing.compiler})
        lines.append(Line([*names, *cells(standing)], where))
    return Table(name, caption, columns, lines, names=len(NAMES))


def _cell(
    context: Context, winner: Winner | None, axes: tuple[str, ...], standing: Standing, primitive: str = ""
) -> Cell:
    """Return the winner of a competition: the axes' values of the fastest point and of its ties."""
    if winner is None:
        return NOTHING
    tried = f"{winner.tried - winner.failed} of {winner.tried}" if winner.failed else ""
    if not winner.points:
        return Cell("none", note=tried, style="bad")
    names = list(dict.fromkeys(_called(context, line, axes, primitive) for line in winner.points))
    more = f" and {len(names) - MOST_TIED} more" if len(names) > MOST_TIED else ""
    point = winner.points[0]
    note = ", ".join(filter(None, [context.ms_text(point), tried]))
    palette = context.colours(axes[-1])
    colours = dict.fromkeys(palette[context.value(line, axes[-1])] for line in winner.points)
    style = "best" if standing.overall.points[:1] == (point,) else "tie" if len(names) > 1 else ""
    return Cell(", ".join(names[:MOST_TIED]) + more, note, point, style, tuple(colours)[:MOST_TIED])


def _called(context: Context, line: int, axes: tuple[str, ...], primitive: str) -> str:
    """Return the name of a point in a cell, with its algorithm where that is not the column's."""
    name = " + ".join(context.value(line, axis) for axis in axes)
    algorithm = context.value(line, "algorithm")
    return f"{name} ({algorithm})" if primitive and algorithm != primitive else name
