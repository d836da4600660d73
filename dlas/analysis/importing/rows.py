"""The rows of a table from elsewhere, and the folder that they are written to."""

from __future__ import annotations

import hashlib
import os
import statistics
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dlas.analysis.importing.columns import OLDER, columns_of
from dlas.analysis.importing.points import PointReader
from dlas.analysis.importing.tables import SourceTable, read_table
from dlas.analysis.importing.values import values_of
from dlas.bench.store.replacing import make_folder, replacing
from dlas.errors import InputError
from dlas.stack import INFERENCE
from dlas.sweep.rows.columns import DERIVED, FEATURE, MACHINE, MACHINE_ID, SAMPLES
from dlas.sweep.rows.files import FILE, check_appendable
from dlas.sweep.rows.finding import point_label
from dlas.sweep.rows.older import unstable_status
from dlas.sweep.rows.records import FIELDS
from dlas.sweep.rows.results import Row
from dlas.sweep.rows.schema import ImportSource

OF_POINTS = {"batch": 1, "seed": 0, "task": INFERENCE}
"""Fields of a point other than its parts, and what they are in a file that does not say."""
PLACES: dict[str, tuple[str, ...]] = {
    **FIELDS,
    **{name: ("device", name) for name in (MACHINE, MACHINE_ID)},
    **{name: ("imported", "derived", name) for name in DERIVED},
}
"""Where a row has what a column says: the inverse of :func:`dlas.sweep.rows.records.record`."""
OF_SAMPLES = ("latency_low_s", "latency_high_s", "latency_min_s", "samples")
"""Columns that are derived from samples, where there are any."""
SAME_MEDIAN = 1e-6
"""Largest relative difference between a row's latency and the median of its samples."""


@dataclass(frozen=True)
class Import:
    """What was imported."""

    rows: int
    machines: dict[str, int]
    """The number of rows of each machine."""


def import_rows(path: str | os.PathLike[str], folder: str | os.PathLike[str]) -> Import:
    """Write the rows of a table from elsewhere into a folder, which every command then reads.

    Parameters
    ----------
    path : path
        A table with the columns that :func:`dlas.sweep.rows.export.export` writes, or some of them:
        ``*.csv``, ``*.csv.xz`` or ``*.parquet``.
    folder : path
        Created if it does not exist.

    Raises
    ------
    InputError
        If the file is no such table, or the folder holds rows; nothing has been written then.
    """
    path, folder = Path(path), Path(folder)
    _check_free(folder)
    table = read_table(path)
    rows = rows_of(table, _digest(path))
    make_folder(folder, "results folder")
    try:
        with replacing(folder / FILE) as partial, partial.open("w", encoding="utf-8") as file:
            file.writelines(row.short_line() for row in rows)
    except OSError as error:
        raise InputError(f"cannot write {str(folder / FILE)!r}: {error.strerror or error}") from None
    return Import(len(rows), dict(Counter(row.device["machine"] for row in rows if "machine" in row.device)))


def rows_of(table: SourceTable, digest: str) -> list[Row]:
    """Return the rows of a table.

    Parameters
    ----------
    digest : str
        The SHA-256 hash of its file, by which a row says where it is from.

    Raises
    ------
    InputError
        If a cell holds what it cannot, or two rows are of one point.
    """
    columns = columns_of(str(table.file), table.columns)
    features = [name for name in columns if name.startswith(FEATURE)]
    read = [*PLACES, *OF_POINTS, *OLDER, *features, "latency_s", SAMPLES]
    values = {name: values_of(table, columns[name]) for name in read if name in columns}
    points = PointReader(table, columns)
    rows = [
        _row(table, points, row, {name: value for name in values if (value := values[name][row]) is not None})
        for row in range(len(table.numbers))
    ]
    _check_ids(table, rows)
    origin: ImportSource = {"file": table.file.name, "sha256": digest}
    for row, number in zip(rows, table.numbers, strict=True):
        place: ImportSource = {"line": number} if table.counted == "line" else {"row": number}
        row.imported = origin | place | (row.imported or {})
    return rows


def _row(table: SourceTable, points: PointReader, number: int, values: dict[str, Any]) -> Row:
    """Return one row, without its origin."""
    others = {name: values.pop(name, default) for name, default in OF_POINTS.items()}
    row_id, point = points.at(number, **others)
    values = {"status": "ok", "study": table.file.name.partition(".")[0]} | values
    values |= unstable_status(values)
    values = {name: value for name, value in values.items() if name not in OLDER}
    _check_row(table, number, values)
    latency_s = values.pop("latency_s", None)
    samples = values.pop(SAMPLES, None)
    if samples:
        values = {name: value for name, value in values.items() if name not in OF_SAMPLES}
    fields: dict[str, Any] = {"latency_s": samples or ([] if latency_s is None else [latency_s])}
    for name, value in values.items():
        feature = ("imported", "features", name.removeprefix(FEATURE))
        _put(fields, feature if name.startswith(FEATURE) else PLACES[name], value)
    return Row(id=row_id, key="", **point.content(), **fields)


def _put(fields: dict[str, Any], place: tuple[str, ...], value: Any) -> None:
    """Put a value where a row has it: into a field, or a mapping in a field."""
    *outer, last = place
    for name in outer:
        fields = fields.setdefault(name, {})
    fields[last] = value


def _check_row(table: SourceTable, number: int, values: Mapping[str, Any]) -> None:
    """Refuse a row with a result that lacks its time or its machine, or contradicts its samples."""
    samples, latency_s = values.get(SAMPLES), values.get("latency_s")
    if values["status"] == "ok" and not samples and latency_s is None:
        raise InputError(f"{table.place(number)}: status ok, and no latency_s")
    if (samples or latency_s) and MACHINE not in values:
        raise InputError(f"{table.place(number, MACHINE)}: a latency, and no machine that it was measured on")
    median_s = statistics.median(samples) if samples else None
    if median_s and latency_s and abs(median_s / latency_s - 1) > SAME_MEDIAN:
        problem = f"{latency_s!r} is not the median of the samples ({median_s!r})"
        raise InputError(f"{table.place(number, 'latency_s')}: {problem}")


def _check_ids(table: SourceTable, rows: Sequence[Row]) -> None:
    """Refuse two rows of one point."""
    seen: dict[str, int] = {}
    for number, row in enumerate(rows):
        first = seen.setdefault(row.id, number)
        if first != number:
            earlier = f"{table.counted} {table.numbers[first]}"
            repeats = "; of several folders, export and import each" if "folder" in table.columns else ""
            raise InputError(
                f"{table.place(number)}: the point of {earlier} again, id {row.id} ({point_label(row)}): "
                f"a point has one row{repeats}"
            )


def _check_free(folder: Path) -> None:
    """Refuse a folder that holds rows."""
    check_appendable(folder)
    if (folder / FILE).exists():
        raise InputError(f"{str(folder)!r} already holds rows ({FILE}); give another `folder=`")


def _digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
