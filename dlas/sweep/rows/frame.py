"""The rows of one sweep or of several as a table: one line a row, one column a quantity.

``dlas.read(folder)`` is :func:`read`.  Columns are named as in a row; the unit
is the name's suffix; a missing value is NA (NaN in a column of floats).  The
type of a column does not depend on how many rows have a value.
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import pandas as pd

from dlas.errors import unknown
from dlas.stack import PART_AXES
from dlas.sweep.rows import intervals
from dlas.sweep.rows.columns import (
    INSTANCE,
    MACHINE,
    MACHINE_ID,
    NUMBERS,
    ORDER,
    SAMPLES,
    TRUTHS,
    WHOLE,
)
from dlas.sweep.rows.filters import Values, kept, parse
from dlas.sweep.rows.layers import layer_records, layers_frame
from dlas.sweep.rows.machines import machine_names, with_threads
from dlas.sweep.rows.predictions import (
    PREDICTED,
    PredictedPoint,
    bound_names,
    holds_only_predictions,
    read_predictions,
)
from dlas.sweep.rows.records import record
from dlas.sweep.rows.results import Row, read_rows
from dlas.sweep.rows.schema import Device
from dlas.sweep.rows.typed import number, option_columns, text, times, truth

PathT = TypeVar("PathT", bound="str | os.PathLike[str]")


def read(
    folders: str | os.PathLike[str] | Iterable[str | os.PathLike[str]],
    *,
    layers: bool = False,
    predictions: bool = False,
) -> pd.DataFrame:
    """Return the rows of one folder or of several, or the layers of their builds.

    Parameters
    ----------
    folders : path or iterable of path
        What ``dlas run --out`` wrote; a folder that is given twice counts once.
    layers : bool
        Return one line for each layer of each row, as :func:`dlas.sweep.rows.layers.layers_frame` describes.
    predictions : bool
        Return the points that ``dlas predict --out`` wrote, too: their status is ``predicted``, ``origin`` is
        the predictor's digest, and the column of what was predicted holds the prediction.

    Returns
    -------
    DataFrame
        One line a row, in the order of the files; rows of one point in several
        folders are all there, as repeats with the same ``id``.  Each part axis is a short
        label (``weight_pruning(level=0.8)``), ``<axis>_name`` is the part's
        name alone and ``<axis>.<option>`` an option that any row gives
        (rows leave defaults out).  ``latency_s`` is the median with
        ``latency_low_s`` and ``latency_high_s``, its bootstrap interval of
        level 0.95, and ``latency_min_s`` the shortest sample; the raw samples are in
        ``latency_samples_s``.  ``coverage``
        is the share of multiply-adds that the requested algorithm computes,
        ``level``, ``units``, ``ratio`` and ``bits`` what the compression reached,
        ``image_height`` the pixels that the first convolution reads from top to bottom,
        ``fine_tuning_s`` the time that its levels took, ``trials`` the
        candidates that a tuner measured, ``drift`` the fraction by which the
        sentinel's slowest run was slower than its fastest.
        ``machine`` is the name of the machine that a row was measured on, ``machine_id``
        its fingerprint (:mod:`dlas.sweep.rows.machines`), ``instance`` which of several alike it is; a row
        that ended before measuring has the machine, its instance and the threads of its folder's other rows
        of that hardware, if these are the same in all.  Where rows of one hardware were measured with several
        numbers of threads, its label says how many: ``local_cpu(threads=2)``.

    Raises
    ------
    InputError
        If a folder holds no results, or a line of them is damaged.
    """
    return read_each(folders, lambda _folder, _row: None, layers=layers, predictions=predictions)


def read_each(
    folders: str | os.PathLike[str] | Iterable[str | os.PathLike[str]],
    seen: Callable[[str, Row], None],
    *,
    layers: bool = False,
    predictions: bool = False,
) -> pd.DataFrame:
    """Return rows as :func:`read` does, for those who need more of them than the table: each is read once.

    Parameters
    ----------
    folders, layers, predictions
        As for :func:`read`.
    seen : callable
        Takes the folder and the row of each line that was measured, before the next one is read.
    """
    paths = distinct([folders] if isinstance(folders, str | os.PathLike) else folders)
    table = RowTable()
    found: list[dict[str, Any]] = []
    # Layers are most of a row's size: each row is reduced to its record before the next one is read.
    for path in paths:
        if predictions and holds_only_predictions(Path(path)):
            continue
        for row in read_rows(Path(path)):
            if layers:
                found += layer_records(len(table.records), row)
            table.add(str(path), row)
            seen(str(path), row)
    guesses = (
        [(path, point) for path in paths for point in read_predictions(Path(path))] if predictions else []
    )
    for path, point in guesses:
        table.add(str(path), point.row)
    frame = table.frame()
    if predictions:
        _fill_in(frame, [point for _, point in guesses])
    return layers_frame(frame, found) if layers else frame


def without_measured(frame: pd.DataFrame) -> pd.DataFrame:
    """Return the lines of a frame without those predictions whose points have a row of the same machine.

    Of machines alike it is the same instance.

    Parameters
    ----------
    frame : DataFrame
        What :func:`read` returned, with predictions or without.
    """
    predicted = frame["status"].eq(PREDICTED)
    places = frame["id"]
    for which in (MACHINE_ID, INSTANCE):
        places = places.str.cat(frame[which].fillna(""), sep=" ")
    return frame[~(predicted & places.isin(places[~predicted]))]


@dataclass
class RowTable:
    """Rows on their way to a table, each reduced to its record."""

    records: list[dict[str, Any]] = field(default_factory=list)
    """Of the rows so far."""
    devices: dict[str | None, Device] = field(default_factory=dict)
    """A device of each machine, by the machine's fingerprint."""

    def add(self, folder: str, row: Row) -> None:
        """Add a row of a folder."""
        self.records.append(record(folder, row))
        self.devices.setdefault(self.records[-1][MACHINE_ID], row.device)

    def frame(self) -> pd.DataFrame:
        """Return the rows as :func:`read` does, with the machines named."""
        frame = _frame(self.records)
        frame[MACHINE_ID], threads = _filled(frame, MACHINE_ID), _filled(frame, "threads")
        frame[INSTANCE] = _filled(frame, INSTANCE)
        frame[MACHINE] = frame[MACHINE_ID].map(machine_names(self.devices.values())).astype("string")
        frame["hardware"] = _explicit_threads(frame["hardware"], threads)
        return frame


def frame_of(rows: Iterable[Row]) -> pd.DataFrame:
    """Return rows that are in memory, as :func:`read` returns those of a folder."""
    table = RowTable()
    for row in rows:
        table.add("", row)
    return table.frame()


def _told(point: PredictedPoint, target: str, key: str) -> float | None:
    """Return the value or a bound of what was predicted of a quantity, None where it was not."""
    bounds: Mapping[str, Any] = point.predictions.get(target, {})
    return bounds.get(key)


def _fill_in(frame: pd.DataFrame, points: Sequence[PredictedPoint]) -> None:
    """Write what was predicted into the last lines of a frame, those of the predicted points."""
    first = len(frame) - len(points)
    frame["origin"] = pd.Series(["measured"] * first + [point.predictor for point in points], dtype="string")
    for target in dict.fromkeys(name for point in points for name in point.predictions):
        for column, key in zip((target, *bound_names(target)), ("value", "low", "high"), strict=True):
            told = [_told(point, target, key) for point in points]
            before = frame[column].iloc[:first] if column in frame else [None] * first
            frame[column] = pd.Series([*before, *told], dtype="Float64").astype("float64")


def distinct(folders: Iterable[PathT]) -> list[PathT]:
    """Return the folders, each once, whichever way it is written: its rows are no repeats of themselves."""
    by_place = {Path(folder).resolve(): folder for folder in reversed(list(folders))}
    return list(reversed(by_place.values()))


def select(frame: pd.DataFrame, where: Sequence[str]) -> pd.DataFrame:
    """Return the lines that all filters keep.

    Parameters
    ----------
    where : sequence of str
        Filters, as :func:`dlas.sweep.rows.filters.parse` reads them: ``axis=pattern``, where any of several
        patterns for one axis may match, or conditions such as ``"compression.level >= 0.8"``.
        An axis is compared as its label and as its part's name alone; an option
        that a row leaves at its default has no value.

    Raises
    ------
    InputError
        If a filter is malformed, or matches no row.
    """
    filters = [parse(text) for text in where]
    columns = {name: _values(frame, name) for chosen in filters for name in chosen.names}
    return frame[np.array(kept(filters, columns), dtype=bool)] if columns else frame


def _values(frame: pd.DataFrame, name: str) -> list[Values]:
    """Return what a name in a filter stands for in each line."""
    if name not in frame:
        options = [
            column for column in map(str, frame) if column.startswith(tuple(f"{a}." for a in PART_AXES))
        ]
        raise unknown("option in `where=`", name, options or ["none at all"])
    columns = [frame[name], *([frame[f"{name}_name"]] if name in PART_AXES else [])]
    lines = zip(*(column.astype(object) for column in columns), strict=True)
    return [tuple(value for value in line if not pd.isna(value)) for line in lines]


def _filled(frame: pd.DataFrame, column: str) -> pd.Series:
    """Return a column; a row without a value has that of its folder and hardware, if it is a single one."""
    groups = frame.groupby(["folder", "hardware"], dropna=False)[column]
    only = groups.transform("first").where(groups.transform("nunique") == 1)
    return frame[column].fillna(only)


def _explicit_threads(hardware: pd.Series, threads: pd.Series) -> pd.Series:
    """Return the labels of hardware, with the threads where one label was measured with several numbers."""
    labelled = pd.Series(
        [
            label if pd.isna(count) or pd.isna(label) else with_threads(label, int(count))
            for label, count in zip(hardware, threads, strict=True)
        ],
        hardware.index,
        dtype="string",
    )
    several = threads.groupby(hardware, dropna=False).transform("nunique") > 1
    return hardware.where(~several, labelled)


def _or_imported(records: list[dict[str, Any]], name: str, values: Iterable[Any]) -> list[Any]:
    """Return what is derived from samples; of imported rows without samples, what their file says."""
    return [record.get(name, value) for record, value in zip(records, values, strict=True)]


def _least(samples: Sequence[float]) -> float:
    return min(samples, default=math.nan)


def _frame(records: list[dict[str, Any]]) -> pd.DataFrame:
    samples = [record[SAMPLES] for record in records]
    samples_column = np.empty(len(records), dtype=object)
    samples_column[:] = samples
    median, low, high = intervals.medians(samples).T
    derived = {
        "latency_s": median,
        "latency_low_s": _or_imported(records, "latency_low_s", low),
        "latency_high_s": _or_imported(records, "latency_high_s", high),
        "latency_min_s": _or_imported(records, "latency_min_s", map(_least, samples)),
        "samples": number(_or_imported(records, "samples", map(len, samples)), whole=True),
    }
    columns: dict[str, Any] = {}
    for name in ORDER:
        values = [record[name] for record in records] if name not in derived else []
        if name in derived:
            columns[name] = derived[name]
        elif name == SAMPLES:
            columns[name] = samples_column
        elif name.endswith("."):
            columns |= option_columns(name, values)
        elif name == "started":
            columns[name] = times(values)
        elif name in TRUTHS:
            columns[name] = truth(values)
        elif name in WHOLE:
            columns[name] = number(values, whole=True)
        else:
            columns[name] = number(values) if name in NUMBERS else text(values)
    return pd.DataFrame(columns)
