"""What the columns of a table mean: those of the table of rows, options of parts, and their units.

A quantity's unit is its column's suffix.  The table of rows has seconds, bytes and joules;
other units of time, size and energy are converted to them.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from dlas.errors import InputError, unknown
from dlas.stack import PART_AXES
from dlas.sweep.rows.columns import FEATURE, MACHINE, ORDER, SAMPLES
from dlas.sweep.rows.older import FLAG, FLAG_REASON

UNITS: dict[str, dict[str, tuple[float, float]]] = {
    "s": {"s": (1, 1), "ms": (1, 1e3), "us": (1, 1e6), "ns": (1, 1e9)},
    "bytes": {
        "bytes": (1, 1),
        **{"kb": (1e3, 1), "mb": (1e6, 1), "gb": (1e9, 1)},
        **{"kib": (2**10, 1), "mib": (2**20, 1), "gib": (2**30, 1)},
    },
    "j": {"j": (1, 1), "mj": (1, 1e3), "uj": (1, 1e6)},
}
"""For the unit of a column, the suffixes that a file may have: what to multiply by, and to divide by."""
COLUMNS = frozenset(name for name in ORDER if not name.endswith("."))
"""Columns of the table of rows, apart from the options of parts."""
OLDER = (FLAG, FLAG_REASON)
"""Columns that tables of before have."""
REQUIRED = ("dataset", "model", "compiler", "hardware", MACHINE)
"""What a file must say; a part as its name."""


@dataclass(frozen=True)
class SourceColumn:
    """A column of a file."""

    written: str
    """Its name in the file."""
    name: str
    """Its name in the table of rows."""
    unit: tuple[float, float] = (1, 1)
    """What its numbers are multiplied by, and divided by."""


def columns_of(file: str, header: Iterable[str]) -> dict[str, SourceColumn]:
    """Return the columns of a file by their names in the table of rows.

    Parameters
    ----------
    file : str
        For messages.
    header : iterable of str
        The names in the file.

    Raises
    ------
    InputError
        If there is no such column, its unit is missing, two are the same quantity, or a column that
        must be there is not.
    """
    found: dict[str, SourceColumn] = {}
    for written in header:
        column = _column(file, written)
        if column.name in found:
            raise InputError(
                f"{file}: columns {found[column.name].written!r} and {written!r} are the same quantity"
            )
        found[column.name] = column
    missing = [name for name in REQUIRED if name not in found and f"{name}_name" not in found]
    if missing:
        wanted = [f"{name}_name" if name in PART_AXES else name for name in missing]
        have = ", ".join(found[name].written for name in found)
        raise InputError(f"{file} has no column {' and none '.join(map(repr, wanted))} (it has: {have})")
    return found


def _column(file: str, written: str) -> SourceColumn:
    """Return the column of a name."""
    axis, dot, option = written.partition(".")
    if written in (*COLUMNS, *OLDER) or (axis in (*PART_AXES, FEATURE.rstrip(".")) and dot and option):
        return SourceColumn(written, written)
    quantity, _, suffix = written.rpartition("_")
    for unit, others in UNITS.items():
        if f"{quantity}_{unit}" in COLUMNS and suffix in others:
            return SourceColumn(written, f"{quantity}_{unit}", others[suffix])
        if f"{written}_{unit}" in COLUMNS:
            expected = ", ".join(f"{written}_{other}" for other in others)
            raise InputError(f"{file}: column {written!r} says no unit: one of {expected} is expected")
    forms = "options of parts are columns such as 'model.width', features such as 'feature.depth'"
    raise InputError(f"{file}: {unknown('column', written, COLUMNS - {SAMPLES})}; {forms}")
