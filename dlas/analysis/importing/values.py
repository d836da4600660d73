"""The values of cells: numbers that are finite and in their range, truths, times and texts."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from typing import Any

from dlas.analysis.importing.columns import SourceColumn
from dlas.analysis.importing.tables import SourceTable
from dlas.bench.store import toml
from dlas.errors import InputError
from dlas.stack import TASKS
from dlas.sweep.rows.columns import (
    ACCURACIES,
    DIFFERENCES,
    FEATURE,
    NUMBERS,
    REACHED,
    SAMPLES,
    TEXTS,
    TRUTHS,
    WHOLE,
)
from dlas.sweep.rows.labels import shortened
from dlas.sweep.rows.older import FLAG
from dlas.sweep.rows.results import STATUSES

NUMBER = re.compile(r"-?(0|[1-9]\d*)(\.\d+)?([eE][-+]?\d+)?")
"""A number as programs write it; ``007`` is a text."""
LARGEST = 2**63 - 1
"""Largest whole number that a table holds."""
SHARES = (*ACCURACIES, *(name for name in REACHED if name != "bits"), "coverage")
BOUNDED = (*SHARES, *DIFFERENCES)
POSITIVE = ("latency_s", "latency_low_s", "latency_high_s", "latency_min_s", "batch", "threads")
TRUTH = {"true": True, "false": False}
NAMES = {"status": STATUSES, "task": TASKS}
"""Columns that hold one of few names."""
Read = Callable[[Any], Any]


def values_of(table: SourceTable, column: SourceColumn) -> list[Any]:
    """Return the values of a column, None for empty cells.

    Raises
    ------
    InputError
        If a cell holds no such value; names its line and column.
    """
    read = _reader(column)
    values: list[Any] = []
    for row, cell in enumerate(table.columns[column.written]):
        try:
            values.append(None if cell is None else read(cell))
        except ValueError as error:
            raise InputError(f"{table.place(row, column.written)}: {error}") from None
    return values


def option_values(cell: Any) -> list[Any]:
    """Return what the cell of an option may stand for, the likeliest first.

    A table has one type a column, and CSV none: ``1.0`` may be the whole number 1, and any
    number a text.
    """
    if not isinstance(cell, str):
        if not isinstance(cell, bool | int | float | list) or (
            isinstance(cell, float) and not math.isfinite(cell)
        ):
            raise ValueError(
                f"{str(cell)!r} is no value of an option: a finite number, a truth, a text or a list"
            )
        return [cell, int(cell)] if isinstance(cell, float) and cell.is_integer() else [cell]
    if cell.lower() in TRUTH:
        return [TRUTH[cell.lower()], cell]
    if NUMBER.fullmatch(cell):
        number = float(cell)
        if not math.isfinite(number) or abs(number) > LARGEST:
            return [cell]
        whole = [int(number)] if number.is_integer() else []
        return [int(cell), cell] if cell.lstrip("-").isdecimal() else [number, *whole, cell]
    return [*_lists(cell), cell]


def _lists(cell: str) -> Sequence[Any]:
    """Return the list that a cell is, or nothing."""
    if not cell.startswith("["):
        return []
    try:
        return [toml.parse(f"value = {cell}")["value"]]
    except InputError:
        return []


def _reader(column: SourceColumn) -> Read:
    """Return the function that reads the cells of a column."""
    name = column.name
    if name == SAMPLES:
        return _samples
    if name in (*TRUTHS, FLAG):
        return _truth
    if name in NAMES:
        return lambda cell: _name(cell, name)
    if name == "started":
        return _time
    if name.startswith(FEATURE):
        return lambda cell: float(_number(cell))
    if name not in (*WHOLE, *NUMBERS, *POSITIVE):
        return str if name in TEXTS else lambda cell: str(cell).strip()
    least, most = (-1.0 if name in DIFFERENCES else 0.0), (1.0 if name in BOUNDED else math.inf)
    whole, above = name in WHOLE, name in POSITIVE

    def number(cell: Any) -> float | int:
        value = _number(cell)
        multiplier, divisor = column.unit
        # By one of them only, so that a whole number stays whole.
        value = value * multiplier if multiplier != 1 else value / divisor if divisor != 1 else value
        if value < least or value > most or (above and value <= 0):
            shares = f"a share from {least:g} to 1" if name in BOUNDED else None
            wanted = shares or ("positive" if above else "0 or more")
            raise ValueError(f"{cell!r} is not {wanted}")
        return _whole(cell, value) if whole else value

    return number


def _number(cell: Any) -> float | int:
    """Return the finite number that a cell is."""
    if isinstance(cell, str) and "_" not in cell:
        cell = _parsed(cell)
    if isinstance(cell, bool) or not isinstance(cell, int | float):
        raise ValueError(f"{cell!r} is not a number")
    try:
        finite = math.isfinite(cell)
    except OverflowError:  # a whole number of hundreds of digits
        raise ValueError(f"{shortened(str(cell), 40)!r} is too large a number") from None
    if not finite:
        raise ValueError(f"{str(cell)!r} is not a finite number; leave the cell empty where none is known")
    return cell


def _parsed(cell: str) -> float | int | str:
    for kind in (int, float):
        try:
            return kind(cell)
        except ValueError:
            continue
    return cell


def _whole(cell: Any, value: float | int) -> int:
    if value != int(value) or value > LARGEST:
        raise ValueError(f"{cell!r} is not a whole number below 2^63")
    return int(value)


def _samples(cell: Any) -> list[float]:
    """Return raw samples, which Parquet has as lists of seconds."""
    if not isinstance(cell, list):
        raise ValueError(f"{cell!r} is not a list of seconds, which Parquet can hold and CSV cannot")
    samples = [float(_number(sample)) for sample in cell]
    if any(sample <= 0 for sample in samples):
        raise ValueError(f"{min(samples)} is not positive")
    return samples


def _truth(cell: Any) -> bool:
    value = TRUTH.get(str(cell).lower())
    if value is None:
        raise ValueError(f"{cell!r} is neither true nor false")
    return value


def _name(cell: Any, column: str) -> str:
    """Return a cell that is one of few names."""
    if cell not in NAMES[column]:
        raise ValueError(f"{cell!r} is no {column} (there are: {', '.join(NAMES[column])})")
    return str(cell)


def _time(cell: Any) -> str:
    """Return a time as rows have it."""
    try:
        time = cell if isinstance(cell, datetime) else datetime.fromisoformat(str(cell))
    except ValueError:
        raise ValueError(f"{cell!r} is no time in ISO 8601, such as 2026-01-31T12:00:00+00:00") from None
    return (time if time.tzinfo else time.replace(tzinfo=UTC)).isoformat()
