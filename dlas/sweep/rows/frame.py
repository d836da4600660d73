"""The rows of one sweep or of several as a table: one line a row, one column a quantity.

``dlas.read(folder)`` is :func:`read`.  Columns are named as in a row; the unit
is the name's suffix; a missing value is NA (NaN in a column of floats).  The
type of a column does not depend on how many rows have a value.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import pandas as pd

from dlas.errors import unknown
from dlas.stack import PART_AXES
from dlas.sweep.rows import kept_frames
from dlas.sweep.rows.columns import (
    INSTANCE,
    MACHINE,
    MACHINE_ID,
)
from dlas.sweep.rows.filters import Values, kept, parse
from dlas.sweep.rows.layers import layer_records, layers_frame
from dlas.sweep.rows.machines import machine_names, with_threads
from dlas.sweep.rows.missing import MISSING, in_words, missing_points
from dlas.sweep.rows.predictions import (
    PREDICTED,
    PredictedPoint,
    bound_names,
    holds_only_predictions,
    read_predictions,
)
from dlas.sweep.rows.records import RowTable
from dlas.sweep.rows.results import Row, line_reader, read_current

PathT = TypeVar("PathT", bound="str | os.PathLike[str]")
DAMAGED = "damaged"
"""Attribute of a frame (``frame.attrs``): the number of lines of its folders that are no rows."""


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

        Where the study of a folder has more points, a warning says so, and ``attrs["missing"]`` lists
        these folders as :class:`dlas.sweep.rows.missing.MissingPoints`.

    Raises
    ------
    InputError
        If a folder holds no results.

    Warns
    -----
    DamagedRows
        If lines of a folder are no rows: they are left out, and ``frame.attrs["damaged"]`` is their number.
    """
    frame = read_each(folders, layers=layers, predictions=predictions)
    for each in frame.attrs.get(MISSING, []):
        if each["missing"]:
            warnings.warn(in_words(each), stacklevel=2)
    return frame


def read_each(
    folders: str | os.PathLike[str] | Iterable[str | os.PathLike[str]],
    *,
    layers: bool = False,
    predictions: bool = False,
) -> pd.DataFrame:
    """Return rows as :func:`read` does, without its warning of points that are missing: callers tell it.

    Parameters
    ----------
    folders, layers, predictions
        As for :func:`read`.
    """
    paths = distinct([folders] if isinstance(folders, str | os.PathLike) else folders)
    guesses = (
        [(path, point) for path in paths for point in read_predictions(Path(path))] if predictions else []
    )
    measured = [str(path) for path in paths if not (predictions and holds_only_predictions(Path(path)))]
    made = _recalled(measured) if not (layers or guesses) else _made(measured, guesses, layers)
    if predictions and not layers:
        _fill_in(made.frame, [point for _, point in guesses])
    lacking = [missing_points(Path(folder), ids) for folder, ids in made.ids.items()]
    if any(lacking):
        made.frame.attrs[MISSING] = [each for each in lacking if each]
    if made.damaged:
        made.frame.attrs[DAMAGED] = made.damaged
    return made.frame


@dataclass(frozen=True)
class _Made:
    """A table of rows."""

    frame: pd.DataFrame
    ids: Mapping[str, set[str]]
    """The points that each folder has rows of."""
    damaged: int = 0
    """Number of lines that are no rows."""


def _recalled(folders: Sequence[str]) -> _Made:
    """Return the table of rows as an earlier command kept it, or make it, and keep it if it is large."""
    if not kept_frames.is_large(folders):
        return _made(folders)
    key = kept_frames.key_of(folders)
    if (frame := kept_frames.recall(key)) is not None:
        ids = {folder: set(frame.loc[frame["folder"] == folder, "id"]) for folder in folders}
        return _Made(frame, ids)
    made = _made(folders)
    if not made.damaged:
        kept_frames.keep(key, made.frame)
    return made


def _made(
    folders: Sequence[str], guesses: Sequence[tuple[PathT, PredictedPoint]] = (), layers: bool = False
) -> _Made:
    """Return the table of rows, or of their layers, after them what was predicted."""
    table = RowTable()
    found: list[dict[str, Any]] = []
    ids: dict[str, set[str]] = {}
    count = 0
    # Layers are most of a row's size: each row is reduced to its record before the next one is read.
    for folder in folders:
        own = ids[folder] = set()
        damaged: dict[int, str] = {}
        for row in read_current(Path(folder), Row.parse if layers else line_reader().line, damaged):
            own.add(row.id)
            if layers:
                found += layer_records(len(table), row)
            table.add(folder, row)
        count += len(damaged)
    for path, point in guesses:
        table.add(str(path), point.row)
    frame = named(table)
    return _Made(layers_frame(frame, found) if layers else frame, ids, count)


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


def named(table: RowTable) -> pd.DataFrame:
    """Return rows as :func:`read` does, with the machines named."""
    frame = pd.DataFrame(table.columns())
    frame[MACHINE_ID], threads = _filled(frame, MACHINE_ID), _filled(frame, "threads")
    frame[INSTANCE] = _filled(frame, INSTANCE)
    frame[MACHINE] = frame[MACHINE_ID].map(machine_names(table.devices.values())).astype("string")
    frame["hardware"] = _explicit_threads(frame["hardware"], threads)
    return frame


def frame_of(rows: Iterable[Row]) -> pd.DataFrame:
    """Return rows that are in memory, as :func:`read` returns those of a folder."""
    table = RowTable()
    for row in rows:
        table.add("", row)
    return named(table)


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
