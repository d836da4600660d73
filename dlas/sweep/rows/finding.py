"""Find a row of a folder by its id."""

from __future__ import annotations

from pathlib import Path

from dlas.errors import InputError
from dlas.stack import INFERENCE, PART_AXES
from dlas.sweep.rows.labels import label
from dlas.sweep.rows.results import Row, read_rows

MOST_CANDIDATES = 10


def find(folder: Path, prefix: str) -> Row:
    """Return the row whose id begins with ``prefix``.

    Raises
    ------
    InputError
        If no row, or more than one, has; the message lists candidates.
    """
    matching: list[Row] = []
    others: list[str] = []
    for row in read_rows(folder):
        if row.id == prefix:
            return row
        if prefix and row.id.startswith(prefix):
            matching.append(row)
        else:
            others.append(f"{row.id}  {row.status}  {point_label(row)}")
    if len(matching) == 1:
        return matching[0]
    if not matching and not others:
        raise InputError(f"{str(folder)!r} has no rows yet")
    problem = f"{len(matching)} ids begin with {prefix!r}" if matching else f"no id begins with {prefix!r}"
    candidates = [f"{row.id}  {row.status}  {point_label(row)}" for row in matching] or others
    listed = "".join(f"\n  {line}" for line in candidates[:MOST_CANDIDATES])
    more = len(candidates) - MOST_CANDIDATES
    raise InputError(f"{problem}; there are:{listed}" + (f"\n  and {more:,} more" if more > 0 else ""))


def point_label(row: Row) -> str:
    """Return the parts, the batch and, unless it is inference, the task of a row's point."""
    parts = " / ".join(label(getattr(row, axis)) for axis in PART_AXES)
    return f"{parts} / batch {row.batch}" + ("" if row.task == INFERENCE else f" / {row.task}")
