"""The points that the rows of a table name: a part on each axis, as a name and options.

A part need not exist here.  One that does is read as in a study, so that an equal point has
the id that it has here: options at their defaults are left out.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Mapping
from typing import Any

from dlas.analysis.importing.columns import SourceColumn
from dlas.analysis.importing.tables import SourceTable
from dlas.analysis.importing.values import option_values
from dlas.errors import InputError
from dlas.stack import PART_AXES
from dlas.sweep.study import parts
from dlas.sweep.study.parts import LIBRARY
from dlas.sweep.study.point import Choice, Point, chained

DEFAULTS = {"compression": "none", "algorithm": LIBRARY}
"""Parts of an axis that a file has no column for."""
MOST_READINGS = 4096
"""Most ways to read a row's options that are tried to find the one of its id."""
Cells = tuple[Any, ...]


class PointReader:
    """Reads the points of a table; equal cells are read once.

    Parameters
    ----------
    table : SourceTable
    columns : mapping of str to SourceColumn
        The table's columns by their names in the table of rows.
    """

    def __init__(self, table: SourceTable, columns: Mapping[str, SourceColumn]) -> None:
        self._table = table
        self._ids = table.columns[columns["id"].written] if "id" in columns else None
        self._columns = {axis: _columns_of(axis, columns) for axis in PART_AXES}
        self._cells = {axis: _cells(table, own) for axis, own in self._columns.items()}
        self._readings: dict[str, dict[Cells, list[Choice]]] = {axis: {} for axis in PART_AXES}

    def at(self, row: int, **others: Any) -> tuple[str, Point]:
        """Return the id and the point of a row.

        Parameters
        ----------
        others
            The point's fields other than parts: batch, seed.

        Raises
        ------
        InputError
            If a part has no name, a chain is odd, or the id is another point's.
        """
        axes = [self._choices(axis, row) for axis in PART_AXES]
        given = self._ids[row] if self._ids else None
        for choices in itertools.islice(itertools.product(*axes), MOST_READINGS if given else 1):
            parts_of: dict[str, Any] = dict(zip(PART_AXES, choices, strict=True))
            point = Point(**parts_of, **others)
            own = point.id
            if given in (None, own):
                for readings, choice in zip(axes, choices, strict=True):
                    _to_front(readings, choice)
                return own, point
        raise InputError(
            f"{self._table.place(row, 'id')}: {given!r} is not the id of this point, which is computed from "
            f"its parts, batch and seed ({own}): leave the column out"
        )

    def _choices(self, axis: str, row: int) -> list[Choice]:
        """Return the ways to read the part of an axis, the likeliest first."""
        cells, known = self._cells[axis][row], self._readings[axis]
        if cells not in known:
            given = dict(zip(self._columns[axis], cells, strict=True))
            try:
                known[cells] = list(_readings(axis, given, self._ids is None))
            except ValueError as error:
                raise InputError(f"{self._table.place(row)}: {error}") from None
        return known[cells]


def _columns_of(axis: str, columns: Mapping[str, SourceColumn]) -> list[SourceColumn]:
    """Return the columns that say the part of an axis: its name, then its options."""
    named = columns.get(f"{axis}_name") or columns.get(axis)
    options = [column for name, column in columns.items() if name.startswith(f"{axis}.")]
    return [*([named] if named else []), *options]


def _cells(table: SourceTable, columns: list[SourceColumn]) -> list[Cells]:
    """Return the cells that say each row's part of an axis; lists, which cannot be looked up, as text."""
    texts = [
        [str(cell) if isinstance(cell, list | dict) else cell for cell in table.columns[column.written]]
        for column in columns
    ]
    return list(zip(*texts, strict=True)) if texts else [()] * len(table.numbers)


def _to_front(readings: list[Choice], choice: Choice) -> None:
    """Move the right reading to the front: it is the likeliest of other rows, too."""
    if readings[0] is not choice:
        readings.remove(choice)
        readings.insert(0, choice)


def _readings(axis: str, cells: Mapping[SourceColumn, Any], checked: bool) -> Iterator[Choice]:
    """Yield the ways to read a part, the likeliest first.

    Parameters
    ----------
    checked : bool
        Whether the parts that exist here decide: where rows have no ids.
    """
    name = str(next((cell for column, cell in cells.items() if "." not in column.name), None) or "").strip()
    name = name or DEFAULTS.get(axis, "")
    if not name:
        raise ValueError(f"no {axis}")
    if any(column.name == axis for column in cells) and "(" in name:
        columns = f"give its name as '{axis}_name' and its options as '{axis}.<option>'"
        raise ValueError(f"column {axis!r}: {name!r}: {columns}")
    prefix = f"{axis}."
    given = {
        column.name.removeprefix(prefix): option_values(cell)
        for column, cell in cells.items()
        if column.name.startswith(prefix) and cell is not None
    }
    most = math.prod(map(len, given.values()))
    readings = [
        _choice(axis, name, dict(zip(given, values, strict=True)))
        for values in itertools.islice(itertools.product(*given.values()), min(most, MOST_READINGS))
    ]
    known = next(filter(None, (_known(axis, reading) for reading in readings)), None) if checked else None
    yield from [known] if known else readings


def _choice(axis: str, name: str, options: Mapping[str, Any]) -> Choice:
    """Return the part of a name with options; a compression's may be a chain."""
    links = name.split("+") if axis == "compression" else [name]
    if len(links) == 1:
        return Choice(name, tuple(sorted(options.items())))
    seen: dict[str, int] = {}
    chain, taken = [], set[str]()
    for link in links:
        seen[link] = seen.get(link, 0) + 1
        prefix = f"{link}." if seen[link] == 1 else f"{link}_{seen[link]}."
        own = {key: value for key, value in options.items() if key.startswith(prefix)}
        taken |= own.keys()
        chain.append(Choice(link, tuple(sorted((key.removeprefix(prefix), own[key]) for key in own))))
    if others := options.keys() - taken:
        raise ValueError(f"column '{axis}.{min(others)}' names no technique of the chain {name!r}")
    return chained(tuple(chain))


def _known(axis: str, choice: Choice) -> Choice | None:
    """Return a choice as a study has it; None where its part does not exist here or takes other options."""
    if choice.chain:
        links = [_known(axis, link) for link in choice.chain]
        return chained(tuple(filter(None, links))) if all(links) else None
    # A name of a file from elsewhere must not import a module: only parts by their plain names are known.
    if not choice.options or choice.name not in parts.plain_names(axis):
        return choice
    try:
        return Choice.checked(axis, choice.name, dict(choice.options))
    except (InputError, ImportError):
        return None
