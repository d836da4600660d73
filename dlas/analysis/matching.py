"""Matching: the current row of each point, and blocks of points that differ along two axes only.

Two points match along some axes when they are equal in everything else: all
other layers with their options, batch, seed, and the machine that measured
them.  Along the hardware, the devices of different machines are different values.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from dlas.stack.types import Floats
from dlas.sweep.rows.columns import AXES, MACHINE, OF_TIME
from dlas.sweep.rows.results import COMPLETED
from dlas.sweep.study.parts import LIBRARY

SETTING = ("dataset", "model", "hardware", MACHINE, "batch", "task", "seed")
"""Columns of a setting: one network on one device, with one batch size, task and seed."""


def _without(*names: str) -> tuple[str, ...]:
    return tuple(name for name in SETTING if name not in names)


SETTING_OF_SEEDS = _without("seed")
"""Columns of a setting over all seeds, which are repetitions."""
PLACE = _without("model")
"""Columns of a place: one dataset, device, batch size, task and seed, where networks are compared."""
PLACE_OF_SEEDS = _without("model", "seed")
"""Columns of a place over all seeds."""
NUMBER = re.compile(r"(\d+(?:\.\d+)?)")
NOTHING = -1
"""In a block, where there is no point."""
MOST_VALUES = 40
"""Most values of an axis in blocks; those with the fewest points are left out."""


COMPARED = tuple(name for name in AXES if name != "task")
"""Axes whose values are compared with one another; an inference and a training step are no alternatives."""


def identity(axes: Sequence[str] = ()) -> list[str]:
    """Return the columns that are equal in points that differ along ``axes`` only.

    Along the hardware the machine is no such column: take the devices of :func:`by_device` then.
    """
    names = [name for name in AXES if name not in axes]
    return names if "hardware" in axes else [*names, MACHINE]


def by_device(frame: pd.DataFrame) -> pd.DataFrame:
    """Return the frame with a value of hardware for each device.

    Where a profile, such as ``local_cpu``, was measured on several machines, its labels
    name the machine: these are as different devices as two boards.
    """
    several = frame.groupby("hardware_name", dropna=False)[MACHINE].transform("nunique") > 1
    devices = frame["hardware"].str.cat(frame[MACHINE].astype("string"), sep=" on ")
    return frame.assign(hardware=devices.where(several & devices.notna(), frame["hardware"]))


def natural(label: str) -> tuple[Any, ...]:
    """Return a sort key that orders numbers in a label by size: ``trials=64`` before ``trials=512``."""
    # Texts and numbers alternate, so that numbers are compared with numbers only.
    pieces = enumerate(NUMBER.split(label))
    return tuple(float(piece) if at % 2 else piece for at, piece in pieces), label


def timed(frame: pd.DataFrame) -> pd.Series:
    """Return which lines are ``ok`` and have a latency."""
    return (frame["status"] == "ok") & (frame["latency_low_s"] > 0)


def statuses_with(column: str) -> tuple[str, ...]:
    """Return the statuses of lines whose value in a column is a result: ``unstable`` ones have no times."""
    return ("ok",) if column in OF_TIME else COMPLETED


def result_in(frame: pd.DataFrame, column: str) -> pd.Series:
    """Return which lines have a result in a column."""
    return frame["status"].isin(statuses_with(column)) & frame[column].notna()


def groups(points: pd.DataFrame, columns: Sequence[str]) -> list[npt.NDArray[np.intp]]:
    """Return the positions of the lines that are equal in ``columns``, in the order in which they appear."""
    if not len(points):
        return []
    number = points.groupby(list(columns), dropna=False, sort=False).ngroup().to_numpy()
    order = np.argsort(number, kind="stable")
    return np.split(order, np.flatnonzero(np.diff(number[order])) + 1)


def latest(frame: pd.DataFrame, axes: Sequence[str] = ()) -> pd.DataFrame:
    """Return one line for equal :func:`identity` and ``axes``: the latest with a time, or else the latest."""
    # `drop_duplicates` treats missing values as equal.
    return latest_last(frame).drop_duplicates([*identity(axes), *axes], keep="last").sort_index()


def latest_last(frame: pd.DataFrame) -> pd.DataFrame:
    """Return the lines without a time, then those with one, each by the time of their start."""
    order = frame[["started"]].assign(timed=timed(frame))
    return frame.loc[order.sort_values(["timed", "started"], kind="stable", na_position="first").index]


def paired(points: pd.DataFrame, first: pd.Series, second: pd.Series, same: Sequence[str]) -> pd.DataFrame:
    """Return pairs of points that are equal in ``same``: the fastest of ``first`` and of ``second``.

    Returns
    -------
    DataFrame
        The columns ``same``, ``first`` and ``second`` (lines of ``points``),
        ``ratio`` (the first's latency over the second's) and ``order``: 1 where
        the second is faster, -1 where the first is, 0 where their intervals overlap.
    """
    ordered = points[timed(points)].sort_values("latency_s", kind="stable")
    firsts, seconds = (
        ordered[chosen[ordered.index]].drop_duplicates([*same])[[*same]].assign(**{name: lambda f: f.index})
        for name, chosen in (("first", first), ("second", second))
    )
    both = firsts.merge(seconds, on=[*same])
    a, b = points.loc[both["first"]].reset_index(), points.loc[both["second"]].reset_index()
    order = np.where(
        b["latency_high_s"] < a["latency_low_s"], 1, np.where(a["latency_high_s"] < b["latency_low_s"], -1, 0)
    )
    return both.assign(ratio=a["latency_s"] / b["latency_s"], order=order)


def in_all(pairs: Sequence[pd.DataFrame], same: Sequence[str]) -> list[pd.DataFrame]:
    """Return those lines of each frame that are in all of them: means over these can be compared.

    Parameters
    ----------
    pairs : sequence of DataFrame
        What :func:`paired` returned.
    same : sequence of str
        Columns by which lines are the same.
    """
    keys = functools.reduce(lambda one, other: one.merge(other), (each[[*same]] for each in pairs))
    return [each.merge(keys) for each in pairs]


@dataclass(frozen=True)
class Blocks:
    """Points along two axes, in blocks of points that are equal in everything else."""

    axes: tuple[str, str]
    values: tuple[list[str], list[str]]
    """The values of both axes, in order."""
    points: npt.NDArray[np.int64]
    """Position in the frame, or :data:`NOTHING`; int [blocks, first, second]."""
    total: int
    library: int
    """All points, and those with a time that are left out because their compiler brings its own kernels and
    an axis is the algorithm.
    """

    def of(self, column: npt.ArrayLike) -> Floats:
        """Return a column's numbers by block and values, NaN where there is no point."""
        numbers = np.append(np.asarray(column, dtype=float), np.nan)
        return numbers[self.points]


def blocks(points: pd.DataFrame, first: str, second: str) -> Blocks:
    """Return the points in blocks along two axes.

    Parameters
    ----------
    points : DataFrame
        What :func:`latest` returned; positions are counted in it.
    """
    axes = (first, second)
    places = pd.Series(np.arange(len(points)), index=points.index)
    chosen = latest(by_device(points), axes) if "hardware" in axes else points
    own = chosen[chosen["algorithm"] != LIBRARY] if "algorithm" in axes else chosen
    values = (_values(own[first]), _values(own[second]))
    own = own[own[first].astype(str).isin(values[0]) & own[second].astype(str).isin(values[1])]
    table = np.full((0, len(values[0]), len(values[1])), NOTHING, dtype=np.int64)
    if len(own):
        block = own.groupby(identity(axes), dropna=False, sort=False).ngroup().to_numpy()
        table = np.full((block.max() + 1, *table.shape[1:]), NOTHING, dtype=np.int64)
        at = [_positions(own[axis], order) for axis, order in zip(axes, values, strict=True)]
        table[block, at[0], at[1]] = places[own.index].to_numpy()
    library = int((timed(points) & (points["algorithm"] == LIBRARY)).sum()) if "algorithm" in axes else 0
    return Blocks(axes, values, table, len(points), library)


def _values(column: pd.Series) -> list[str]:
    counts = column.dropna().astype(str).value_counts()
    return sorted(counts.index[:MOST_VALUES], key=natural)


def _positions(column: pd.Series, order: Iterable[str]) -> npt.NDArray[np.int64]:
    return pd.Categorical(column.astype(str), categories=list(order)).codes.astype(np.int64)
