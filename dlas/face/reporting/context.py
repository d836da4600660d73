"""What the sections of a report share: the points, their names, and their colours."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from dlas.analysis.break_even import SpeedCurve, curves
from dlas.analysis.interactions import Interaction, interactions
from dlas.analysis.matching import SETTING, timed
from dlas.analysis.observations import Evidence
from dlas.analysis.rankings import Ranking, rankings
from dlas.analysis.winners import Standing, standings
from dlas.face.reporting.palette import colours
from dlas.face.tables.columns import maybe
from dlas.face.tables.table import Where
from dlas.prediction.learning.stored import StoredPredictor
from dlas.stack import PART_AXES
from dlas.sweep.rows.columns import AXES, MACHINE, UNSAID
from dlas.sweep.rows.details import Details
from dlas.sweep.rows.labels import MISSING, PARTLY_MEANS, coverage_mark, interval_ms, milliseconds, shortened
from dlas.sweep.rows.short_labels import Abbreviations
from dlas.sweep.study.parts import LIBRARY

NAMED = (*AXES, MACHINE)
WIDE = 8.0
"""Least ratio of the largest to the smallest value for a logarithmic axis."""
LONGEST = 60
"""Most characters of a label in a figure."""


@dataclass(eq=False)
class Context:
    """The points of a report, and what several sections derive from them."""

    folders: Sequence[str]
    points: pd.DataFrame
    """What :func:`dlas.analysis.roles.with_roles` returned."""
    left_out: int = 0
    """Rows of points that have a later one: repeats that failed, and copies."""
    damaged: int = 0
    """Lines of the folders that are no rows."""
    details: Details = field(default_factory=Details)
    abbreviations: Abbreviations = field(default_factory=Abbreviations)
    """What the labels of ``points`` leave out."""
    fewer: str = ""
    """Which rows are left out because they are very many, as a sentence."""
    predictors: Sequence[StoredPredictor] = ()
    """Predictors to show."""
    missing: Sequence[str] = ()
    """Which points of the folders' studies have no row, a sentence a folder."""
    predictions: pd.DataFrame | None = None
    """Points that were predicted and have no row."""
    rows: pd.DataFrame | None = None
    """All rows of the points, those of one point on several boards apart."""

    @cached_property
    def predicted(self) -> pd.DataFrame:
        """The points that were predicted and have no row."""
        return self.points.iloc[:0] if self.predictions is None else self.predictions

    @cached_property
    def evidence(self) -> Evidence:
        """The points as observations read them."""
        return Evidence(self.points)

    @cached_property
    def timed(self) -> npt.NDArray[np.bool_]:
        """Which points have a time that is a result."""
        return timed(self.points).to_numpy(dtype=bool)

    @cached_property
    def varying(self) -> list[str]:
        """The axes with more than one value, and the machine if one profile was measured on several."""
        axes = [name for name in AXES if self.points[name].nunique(dropna=False) > 1]
        machines = self.points.groupby("hardware_name", dropna=False)[MACHINE].nunique()
        return [*axes, MACHINE] if (machines > 1).any() else axes

    @cached_property
    def constant(self) -> dict[str, str]:
        """The axes with one value, and that value."""
        names = [name for name in NAMED if name not in self.varying and len(self.points)]
        values = {name: self.points[name].iloc[0] for name in names}
        return {name: str(value) for name, value in values.items() if pd.notna(value)}

    @property
    def same(self) -> str:
        """What all points have in common, as the end of a sentence; empty where that is nothing."""
        axes = [
            f"{axis} {value}"
            for axis, value in self.constant.items()
            if axis != MACHINE and UNSAID.get(axis) != value
        ]
        return "; ".join(filter(None, (", ".join(axes), str(self.abbreviations))))

    @cached_property
    def standings(self) -> list[Standing]:
        """The winners, by setting and compiler."""
        return standings(self.points)

    @cached_property
    def _colours(self) -> dict[str, dict[str, str]]:
        return {axis: colours(axis, self.points[axis].dropna().unique()) for axis in PART_AXES}

    def colours(self, axis: str) -> dict[str, str]:
        """Return the colour of each value of an axis."""
        return self._colours[axis]

    @cached_property
    def interactions(self) -> list[Interaction]:
        """The analysis of variance of each pair of axes."""
        return interactions(self.points)

    @cached_property
    def rankings(self) -> list[Ranking]:
        """How stable the ranking of each axis's values is along each other axis."""
        return rankings(self.points)

    @cached_property
    def speed_curves(self) -> list[SpeedCurve]:
        """The speed of pruned networks over dense code, by level."""
        return curves(self.points)

    @cached_property
    def _statuses(self) -> list[str]:
        return self.points["status"].astype(str).tolist()

    @cached_property
    def noisy(self) -> np.ndarray:
        """Which points have a latency that was measured on a disturbed machine."""
        noisy = self.points["noisy"].fillna(False).to_numpy(dtype=bool)
        disturbed: np.ndarray = noisy & self.timed
        return disturbed

    def value(self, line: int, axis: str) -> str:
        """Return a point's value of an axis as text."""
        value = self.columns[axis][line]
        return MISSING if value is None else value

    @cached_property
    def columns(self) -> dict[str, list[str | None]]:
        """Every axis's values as text, None where there is none."""
        return {
            name: [None if pd.isna(value) else str(value) for value in self.points[name]] for name in NAMED
        }

    def name(self, line: int, axes: Iterable[str] = AXES) -> str:
        """Return a point's values of the varying axes among ``axes`` as text, or its model if none varies.

        A runtime has kernels of its own, so that its name says the algorithm, too.
        """
        shown = [axis for axis in axes if axis in self.varying]
        if "compiler" in shown and self.columns["algorithm"][line] == LIBRARY:
            shown = [axis for axis in shown if axis != "algorithm"]
        return " · ".join(worded(axis, self.value(line, axis)) for axis in shown) or self.value(line, "model")

    def setting(self, line: int) -> str:
        """Return the setting of a point as text."""
        return self.name(line, SETTING)

    def called(self, values: Mapping[str, Any] | pd.Series, axes: Iterable[str] = SETTING) -> str:
        """Return the values of the varying axes among ``axes`` as text, or ``all`` if none varies."""
        shown = [(axis, values[axis]) for axis in axes if axis in self.varying]
        return " · ".join(worded(axis, maybe(value, str)) for axis, value in shown) or "all"

    def where(self, line: int, axes: Iterable[str]) -> Where:
        """Return a point's values of the varying axes among ``axes``, for filters."""
        return {axis: self.value(line, axis) for axis in axes if axis in self.varying}

    def filters(self, values: Mapping[str, Any]) -> Where:
        """Return the values of varying axes, for filters."""
        return {axis: maybe(value, str) for axis, value in values.items() if axis in self.varying}

    def interval(self, line: int) -> str:
        """Return a point's latency in milliseconds with its interval."""
        low, median, high = self._times[line].tolist()
        return interval_ms(median, low, high) + self.partly(line)

    def median_ms(self, line: int) -> float:
        """Return a point's median latency in milliseconds, NaN without one."""
        return float(self._times[line, 1]) * 1e3

    def status(self, line: int) -> str:
        """Return the status of a point."""
        return self._statuses[line]

    def ms_text(self, line: int) -> str:
        """Return a point's median latency in milliseconds, without the unit."""
        return milliseconds(float(self._times[line, 1])) + self.partly(line)

    def partly(self, line: int) -> str:
        """Return the mark of partial coverage where a point's algorithm declined some layers."""
        return coverage_mark(self.coverage[line])

    @cached_property
    def coverage(self) -> list[float]:
        """The share of multiply-adds that each point's algorithm computes, NaN where unknown."""
        shares: list[float] = self.points["coverage"].tolist()
        return shares

    @cached_property
    def partly_means(self) -> str:
        """What the mark of partial coverage means, as a sentence after another; empty if no point has it."""
        marked = (self.points["coverage"].lt(1) & self.timed).any()
        return f" {PARTLY_MEANS}." if marked else ""

    def drawn(self, line: int) -> dict[str, Any]:
        """Return a point's latency and interval for a figure, rounded, or None for each."""
        low, middle, high = (self._times[line] * 1e3).tolist() if self.timed[line] else (None, None, None)
        return {
            "x": significant(middle),
            "lo": significant(low),
            "hi": significant(high),
            "s": "" if self.timed[line] else f"✕ {self.status(line)}",
            "n": bool(self.noisy[line]),
        }

    @cached_property
    def _times(self) -> np.ndarray:
        return self.points[["latency_low_s", "latency_s", "latency_high_s"]].to_numpy(dtype=float)


def worded(axis: str, value: str) -> str:
    """Return a value as text of its own: ``batch 8``, ``seed 1``, other values unchanged."""
    return f"{axis} {value}" if axis in ("batch", "seed") else shortened(value, LONGEST)


def significant(value: float | None, digits: int = 5) -> float | None:
    """Return a number rounded to so many digits, which keeps the page small."""
    return None if value is None or not np.isfinite(value) else float(f"{value:.{digits}g}")


def slug(text: str) -> str:
    """Return a text that is valid as the name of a file or an anchor."""
    return re.sub(r"[^\w.-]+", "-", text).strip("-.") or "unnamed"


def scale(values: Iterable[float | None]) -> str:
    """Return the scale for some numbers: ``log`` where their ratios are large, otherwise ``linear``."""
    positive = [value for value in values if value is not None and value > 0]
    return "log" if positive and max(positive) >= WIDE * min(positive) else "linear"
