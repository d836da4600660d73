"""Which rows may be compared: the current row of each point, and blocks of points along two axes.

Two points match along some axes when they are equal in everything else: all
other layers with their options, batch, seed, and the machine that measured
them (save where the hardware is one of the axes).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from dlas.rows.columns import AXES, MACHINE
from dlas.study.parts import LIBRARY

SETTING = ("dataset", "model", "hardware", MACHINE, "batch", "seed")
"""Points alike in these answer one question: how fast can this network run here?"""


def _without(*names: str) -> tuple[str, ...]:
    return tuple(name for name in SETTING if name not in names)


SETTING_OF_SEEDS = _without("seed")
"""The same question asked of networks trained from any seed, which repeat one another."""
PLACE = _without("model")
"""Models are compared here: which of several networks, trained from one seed, is the better one?"""
PLACE_OF_SEEDS = _without("model", "seed")
"""Networks solve one problem in one place, whichever model and seed they are."""
NUMBER = re.compile(r"(\d+(?:\.\d+)?)")
NOTHING = -1
"""Stands in a block where there is no point."""
MOST_VALUES = 40
"""Values of an axis that are compared in blocks; those with the fewest points are left out."""


def identity(axes: Sequence[str] = ()) -> list[str]:
    """Return the columns in which points that differ along ``axes`` only are equal."""
    names = [name for name in AXES if name not in axes]
    return names if "hardware" in axes else [*names, MACHINE]


def natural(label: str) -> tuple[Any, ...]:
    """Order numbers by size and before words, also inside a label: ``trials=64`` before ``trials=512``."""
    # Texts and numbers alternate, so that like is compared with like.
    pieces = enumerate(NUMBER.split(label))
    return tuple(float(piece) if at % 2 else piece for at, piece in pieces), label


def timed(frame: pd.DataFrame) -> pd.Series:
    """Return which lines are ``ok`` and have a time."""
    return (frame["status"] == "ok") & (frame["latency_low_s"] > 0)


def groups(points: pd.DataFrame, columns: Sequence[str]) -> list[npt.NDArray[np.intp]]:
    """Return the positions of the lines that are equal in ``columns``, in the order in which they appear."""
    if not len(points):
        return []
    number = points.groupby(list(columns), dropna=False, sort=False).ngroup().to_numpy()
    order = np.argsort(number, kind="stable")
    return np.split(order, np.flatnonzero(np.diff(number[order])) + 1)


def latest(frame: pd.DataFrame, axes: Sequence[str] = ()) -> pd.DataFrame:
    """Return one line a point: a later time replaces an earlier one, and a failure never replaces a time.

    Parameters
    ----------
    axes : sequence of str
        Where ``hardware`` is among them, one machine's row replaces another's.
    """
    ordered = frame.assign(timed=timed(frame)).sort_values(
        ["timed", "started"], kind="stable", na_position="first"
    )
    # A missing value equals a missing value here, as it is to do.
    current = ordered.drop_duplicates([*identity(axes), *axes], keep="last")
    return current.drop(columns="timed").sort_index()


def paired(points: pd.DataFrame, first: pd.Series, second: pd.Series, same: Sequence[str]) -> pd.DataFrame:
    """Return the fastest of either kind of points wherever they are equal in ``same``.

    Returns
    -------
    DataFrame
        The columns ``same``, ``first`` and ``second`` (lines of ``points``),
        ``ratio`` (the first's latency over the second's) and ``order``: 1 where
        the second is faster, -1 where the first is, 0 where their intervals overlap.
    """
    ordered = points[timed(points)].sort_values("latency_s", kind="stable")
    one, other = (
        ordered[chosen[ordered.index]].drop_duplicates([*same])[[*same]].assign(**{name: lambda f: f.index})
        for name, chosen in (("first", first), ("second", second))
    )
    both = one.merge(other, on=[*same])
    a, b = points.loc[both["first"]].reset_index(), points.loc[both["second"]].reset_index()
    order = np.where(
        b["latency_high_s"] < a["latency_low_s"], 1, np.where(a["latency_high_s"] < b["latency_low_s"], -1, 0)
    )
    return both.assign(ratio=a["latency_s"] / b["latency_s"], order=order)


@dataclass(frozen=True)
class Blocks:
    """Points along two axes, in blocks that are equal in everything else.

    Parameters
    ----------
    axes : pair of str
    values : pair of list of str
        The values of either axis, in order.
    points : ndarray of int, [blocks, first, second]
        Position in the frame, or :data:`NOTHING`.
    total, library : int
        Points there were, and those with a time left out because their
        compiler brings its own kernels and an axis is the algorithm.
    """

    axes: tuple[str, str]
    values: tuple[list[str], list[str]]
    points: npt.NDArray[np.int64]
    total: int
    library: int

    def of(self, column: npt.ArrayLike) -> npt.NDArray[np.float64]:
        """Return a column's numbers in the blocks' places, NaN where there is no point."""
        numbers = np.append(np.asarray(column, dtype=float), np.nan)
        return numbers[self.points]


def blocks(points: pd.DataFrame, first: str, second: str) -> Blocks:
    """Return the points along two axes.

    Parameters
    ----------
    points : DataFrame
        What :func:`latest` returned; positions are counted in it.
    """
    axes = (first, second)
    places = pd.Series(np.arange(len(points)), index=points.index)
    chosen = latest(points, axes) if "hardware" in axes else points
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
    places = {value: place for place, value in enumerate(order)}
    return np.array([places[value] for value in column.astype(str)], dtype=np.int64)
