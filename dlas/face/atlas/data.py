"""The data of the page: each column once, its texts as a list of values and a number for each row."""

from __future__ import annotations

from typing import Any

import pandas as pd

from dlas.face.atlas.columns import COLUMNS, AtlasColumn
from dlas.face.reporting.context import significant
from dlas.stack import PART_AXES
from dlas.sweep.rows.columns import OF_TIME

DIGITS = 6
"""Of a number on the page."""
LONGEST = 2000
"""Most characters of a text; `dlas show` prints a longer reason whole."""


def data_of(frame: pd.DataFrame) -> dict[str, Any]:
    """Return what the page's script reads.

    Parameters
    ----------
    frame : DataFrame
        What :func:`dlas.read` returned.

    Returns
    -------
    dict
        ``rows``, how many there are, and ``columns``, in the page's order: those of numbers with ``numbers``,
        in SI units, None for none; those of texts with ``values`` and ``codes``, the place of each row's
        value, -1 for none.  A column of parts has ``groups``: the part's name for each value.
    """
    return {"rows": len(frame), "columns": [_packed(column, frame) for column in COLUMNS]}


def _packed(column: AtlasColumn, frame: pd.DataFrame) -> dict[str, Any]:
    """Return a column with its values."""
    told = {"name": column.name, "title": column.title, "unit": column.unit, "factor": column.factor}
    if column.number:
        return told | {"numbers": _numbers(frame, column.name)}
    codes, values = pd.factorize(_texts(frame[column.name]))
    told |= {"codes": codes.tolist(), "values": [str(value)[:LONGEST] for value in values]}
    if column.name in PART_AXES:
        names = dict(zip(frame[column.name], frame[f"{column.name}_name"], strict=True))
        told["groups"] = [str(names[value]) for value in values]
    return told


def _texts(column: pd.Series) -> pd.Series:
    """Return a column as texts; of times without fractions of a second."""
    if pd.api.types.is_datetime64_any_dtype(column):
        column = column.dt.strftime("%Y-%m-%d %H:%M:%S UTC")
    return column.astype("string")


def _numbers(frame: pd.DataFrame, name: str) -> list[float | None]:
    """Return numbers; what follows from times is none where these are no result, as of unstable rows."""
    column = frame[name].astype("float64")
    if name in OF_TIME:
        column = column.where(frame["status"].eq("ok"))
    return [_short(significant(value, DIGITS)) for value in column.tolist()]


def _short(value: float | None) -> float | None:
    """Return a whole number without its decimal point."""
    return int(value) if value is not None and value.is_integer() else value
