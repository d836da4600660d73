"""Columns of one type, whatever values are missing."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable
from typing import Any

import numpy as np
import pandas as pd


def option_columns(prefix: str, rows: list[dict[str, Any]]) -> dict[str, Any]:
    """Return a column for every option that any row gives."""
    names = sorted({option for row in rows for option in row})
    return {f"{prefix}{option}": inferred([row.get(option) for row in rows]) for option in names}


def text(values: Iterable[Any]) -> Any:
    """Return texts; None is missing."""
    values = list(values)
    if _types_of(values) <= {str}:
        with contextlib.suppress(UnicodeEncodeError):
            return pd.array(values, dtype="string")
    # JSON can hold half a character, and neither Arrow nor a terminal can.
    texts = [None if value is None else str(value).encode("utf-8", "replace").decode() for value in values]
    return pd.array(texts, dtype="string")


def truth(values: list[Any]) -> Any:
    """Return truths; None is missing."""
    return pd.array([None if value is None else bool(value) for value in values], dtype="boolean")


def number(values: list[Any], whole: bool = False) -> Any:
    """Return numbers; other values are missing."""
    types = _types_of(values)
    if whole and types <= {int}:
        return pd.array(values, dtype="Int64")
    if not whole and types <= {int, float}:
        return np.array(values, dtype=float)
    numbers = pd.Series(pd.to_numeric(pd.Series(values, dtype=object), errors="coerce"), dtype="float64")
    if not whole:
        return numbers.to_numpy()
    integers = [
        value if isinstance(value, int) else None if np.isnan(number) else round(number)
        for value, number in zip(values, numbers, strict=True)
    ]
    return pd.array(integers, dtype="Int64")


def times(values: Iterable[Any]) -> pd.Series:
    """Return points in time, in UTC; what is none is missing."""
    # The unit would otherwise depend on how the times are written.
    times = pd.to_datetime(pd.Series(text(values)), utc=True, errors="coerce", format="ISO8601")
    return times.astype("datetime64[us, UTC]")


def inferred(values: list[Any]) -> Any:
    """Return values of unknown type in the narrowest type that holds them all: truth, whole, number, text."""
    types = _types_of(values)
    if types <= {bool}:
        return pd.array(values, dtype="boolean")
    if types <= {int}:
        # A column of whole numbers has 64 bits.
        within = all(value is None or -(2**63) <= value < 2**63 for value in values)
        return number(values, whole=True) if within else text(values)
    return number(values) if types <= {int, float} else text(values)


def _types_of(values: Iterable[Any]) -> set[type]:
    return set(map(type, values)) - {type(None)}
