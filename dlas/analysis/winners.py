"""The fastest of several points, with its ties.

The paper's Tables 3, 4 and 6: the fastest algorithm for each compression, the
fastest compression for each algorithm, and the fastest of all.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pandas as pd

from dlas.analysis.matching import SETTING, groups, natural, timed
from dlas.analysis.roles import DENSE, TUNINGS
from dlas.errors import InputError, listed

Lines = npt.NDArray[np.intp]


@dataclass(frozen=True)
class Winner:
    """The outcome of one competition."""

    points: tuple[int, ...]
    """Lines of the frame: the fastest first, then those whose interval overlaps with its own; empty where
    nothing has a time.
    """
    tried: int
    failed: int
    """Number of compared points, and of those without a time."""

    @property
    def tie(self) -> bool:
        """Whether another point's interval overlaps with the fastest's."""
        return len(self.points) > 1


class Times:
    """The latencies of all points with their intervals, to find the fastest of a group."""

    def __init__(self, points: pd.DataFrame) -> None:
        has_time = timed(points).to_numpy(dtype=bool)
        self.median, self.low, self.high = (
            np.where(has_time, points[name].to_numpy(dtype=float), np.nan)
            for name in ("latency_s", "latency_low_s", "latency_high_s")
        )

    def fastest(self, lines: Lines) -> Winner:
        """Return the fastest of the points in these lines, with its ties."""
        ok = lines[~np.isnan(self.median[lines])]
        if not len(ok):
            return Winner((), len(lines), len(lines))
        ordered = ok[np.argsort(self.median[ok], kind="stable")]
        first, others = ordered[0], ordered[1:]
        ties = others[self.low[others] <= self.high[first]]
        return Winner((int(first), *map(int, ties)), len(lines), len(lines) - len(ok))


@dataclass(frozen=True)
class Standing:
    """The winners in one setting under one compiler."""

    setting: Mapping[str, object]
    """Dataset, model, hardware, machine, batch, task and seed."""
    compiler: str
    tuning: str
    """The compiler and its place in :data:`dlas.analysis.roles.TUNINGS`."""
    by_compression: Mapping[str, Winner]
    """Among all algorithms."""
    by_primitive: Mapping[str, Winner]
    """Among all compressions; versions of an algorithm on other data formats compete for it."""
    overall: Winner


def fastest_id(frame: pd.DataFrame) -> str:
    """Return the id of the fastest point of one setting.

    Raises
    ------
    InputError
        If no point has a time, or they are of several settings, whose times are not comparable.
    """
    with_time = frame[timed(frame)]
    if with_time.empty:
        raise InputError("no row has a time, so that none is the fastest")
    varying = [name for name in SETTING if with_time[name].nunique(dropna=False) > 1]
    if varying:
        values = "; ".join(f"{name}: {_listed(with_time[name])}" for name in varying)
        raise InputError(f'the fastest of what? Choose one with `where="axis=value"` ({values})')
    return str(with_time["id"].iloc[int(with_time["latency_s"].argmin())])


def _listed(column: pd.Series) -> str:
    return listed(sorted({str(value) for value in column}, key=natural))


def standings(points: pd.DataFrame) -> list[Standing]:
    """Return the winners in each setting under each compiler; runtimes are left out.

    Parameters
    ----------
    points : DataFrame
        What :func:`dlas.analysis.roles.with_roles` returned.

    Returns
    -------
    list of Standing
        The untuned first, and settings in the order of the rows.
    """
    times = Times(points)
    own = np.flatnonzero(points["tuning"] != "runtime")
    columns = {name: points[name].astype(str).to_numpy() for name in ("compression", "primitive")}
    ranked = []
    for inside in groups(points.iloc[own], [*SETTING, "compiler"]):
        lines = own[inside]
        first = points.iloc[lines[0]]
        ranked.append(
            Standing(
                setting={name: first[name] for name in SETTING},
                compiler=str(first["compiler"]),
                tuning=str(first["tuning"]),
                by_compression=_winner_by_value(times, lines, columns["compression"]),
                by_primitive=_winner_by_value(times, lines, columns["primitive"]),
                overall=times.fastest(lines),
            )
        )
    return sorted(ranked, key=lambda standing: (TUNINGS.index(standing.tuning), natural(standing.compiler)))


def compressions(points: pd.DataFrame) -> list[str]:
    """Return the compressions, the dense network first."""
    return sorted(points["compression"].dropna().unique(), key=lambda name: (name != DENSE, natural(name)))


def _winner_by_value(times: Times, lines: Lines, column: npt.NDArray[np.object_]) -> dict[str, Winner]:
    values = column[lines]
    return {str(value): times.fastest(lines[values == value]) for value in np.unique(values)}
