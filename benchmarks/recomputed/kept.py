"""The kept rows of studies, as their READMEs read them."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any, TypeVar

import numpy as np
import pandas as pd

from benchmarks.studies import ROOT
from dlas.analysis.matching import timed
from dlas.analysis.roles import with_roles
from dlas.sweep.rows.files import complete_lines, results_file
from dlas.sweep.rows.frame import read
from dlas.sweep.rows.results import Row

Function = TypeVar("Function", bound=Callable[..., Any])
EXPERIMENTS = ROOT / "experiments"
SLOW: set[Callable[..., Any]] = set()
"""Functions that read thousands of rows or fit predictors: not for `make test`."""


def slow(function: Function) -> Function:
    """Mark a function as one that takes more than a second."""
    SLOW.add(function)
    return function


@cache
def points(*folders: str) -> pd.DataFrame:
    """Return a line for each point of folders below ``experiments/``, repeats joined."""
    return with_roles(read([EXPERIMENTS / folder for folder in folders]))


@cache
def lines(folder: str) -> tuple[Row, ...]:
    """Return each measurement of a folder below ``experiments/`` in the order of its file, repeats apart."""
    return tuple(map(Row.parse, complete_lines(results_file(EXPERIMENTS / folder))))


def count(folder: str) -> float:
    """Return how many measurements a folder below ``experiments/`` keeps."""
    return len(lines(folder))


def number_of_points(folder: str) -> float:
    """Return how many points they are of."""
    return len(points(folder))


def noisy(folder: str) -> float:
    """Return how many points are marked noisy."""
    return float(points(folder)["noisy"].fillna(False).sum())


def ratio(one: float, other: float) -> float | None:
    """Return a time over another; None where one of them is unstable, and so no result."""
    return None if np.isnan(one / other) else one / other


def only(frame: pd.DataFrame, **values: object) -> pd.DataFrame:
    """Return the lines with these values; ``None`` asks for a missing one."""
    chosen = np.ones(len(frame), dtype=bool)
    for name, value in values.items():
        column = frame[name.replace("__", ".")]
        same = column.isna() if value is None else (column == value).fillna(False)
        chosen &= same.to_numpy(dtype=bool)
    return frame[chosen]


def one(frame: pd.DataFrame, column: str, **values: object) -> float:
    """Return a column's value of the only line with these values."""
    lines = only(frame, **values)
    assert len(lines) == 1, f"{len(lines)} lines with {values}"
    return float(lines[column].iloc[0])


def over_dense(frame: pd.DataFrame, **own: object) -> float | None:
    """Return how many times as fast as dense ``direct`` in float32 a program is; None where one has no time.

    Parameters
    ----------
    frame : DataFrame
        Programs of one network and compiler.
    own
        Values of the program's columns.
    """
    frame = frame[timed(frame)]
    dense = only(frame, compression_name="none", algorithm="direct")
    found = only(frame, **own)
    return None if dense.empty or found.empty else one(dense, "latency_s") / one(found, "latency_s")


def geometric_mean(values: pd.Series) -> float:
    """Return the geometric mean of values."""
    return float(np.exp(np.log(values).mean()))
