"""Points that were predicted and not measured, beside the fastest that was measured in their setting."""

from __future__ import annotations

from collections.abc import Mapping

import pandas as pd

from dlas.analysis.matching import SETTING, groups
from dlas.face.reporting.blocks import Absent, Section
from dlas.face.reporting.context import Context
from dlas.face.tables.columns import maybe
from dlas.face.tables.table import Cell, Line, Table, columns_of, numbers_of
from dlas.prediction.learning.intervals import LEVEL
from dlas.sweep.rows.columns import AXES
from dlas.sweep.rows.labels import MISSING, interval_ms, milliseconds
from dlas.sweep.rows.labels import points as counted

MOST_OF_A_SETTING = 5
"""Predicted points of a setting that are listed, the fastest."""
MOST_LINES = 300


def section(context: Context) -> Section | Absent:
    """Return the predicted points of each setting that may be the fastest."""
    title = "Predicted points"
    count = int(context.predicted["latency_s"].notna().sum())
    if not count:
        return Absent(title, "predictions: `dlas explore STUDY --share 0.1 --out FOLDER`")
    lead = (
        f"{counted(count)} were predicted and not measured. Those of each setting that may be the fastest "
        "are here; no other section, ratio or observation counts any of them."
    )
    return Section("predicted", title, lead, [_table(context)])


def _table(context: Context) -> Table:
    """Return the fastest predicted points of each setting."""
    predicted = _as_on_the_page(context)
    named = [axis for axis in AXES if _values(context, predicted, axis) > 1] or ["model"]
    best = _fastest_measured(context)
    lines = []
    for setting in groups(predicted, SETTING):
        of_setting = predicted.iloc[setting].sort_values("latency_s", kind="stable")
        measured = best.get(_key(of_setting.iloc[0]), MISSING)
        for _, point in of_setting.head(MOST_OF_A_SETTING).iterrows():
            cells = [Cell(maybe(point[axis], str)) for axis in named]
            filters = {axis: maybe(point[axis], str) for axis in named if axis in context.varying}
            lines.append(Line([*cells, Cell(_interval(point)), Cell(measured)], filters))
    caption = (
        f"Of each setting the {MOST_OF_A_SETTING} points that are predicted to be the fastest, with their "
        f"{LEVEL:.0%} intervals, beside the fastest that was measured there."
    )
    if len(lines) > MOST_LINES:
        caption += f" The first {MOST_LINES} of {len(lines):,} lines are shown."
    headers = (f"predicted ms [{LEVEL:.0%} interval]", "fastest measured, ms")
    columns = [*columns_of(*named), *numbers_of(*headers)]
    return Table("predicted", caption, columns, lines[:MOST_LINES], names=len(named))


def _as_on_the_page(context: Context) -> pd.DataFrame:
    """Return the predicted points, their parts called as those of the measured points are."""
    columns = {}
    for axis, full in context.abbreviations.full.items():
        short = {label: called for called, label in full.items()}
        labels = context.predicted[axis].dropna().unique()
        columns[axis] = context.predicted[axis].map({label: short.get(label, label) for label in labels})
    return context.predicted.assign(**columns).dropna(subset=["latency_s"])


def _values(context: Context, predicted: pd.DataFrame, axis: str) -> int:
    """Return how many values of an axis the page has."""
    return len({*context.points[axis].dropna().astype(str), *predicted[axis].dropna().astype(str)})


def _fastest_measured(context: Context) -> Mapping[tuple[str, ...], str]:
    """Return the shortest latency that was measured in each setting, as text."""
    timed = context.points[context.timed].sort_values("latency_s", kind="stable")
    fastest = timed.drop_duplicates([*SETTING])
    return {_key(point): milliseconds(point["latency_s"]) for _, point in fastest.iterrows()}


def _key(point: pd.Series) -> tuple[str, ...]:
    return tuple(maybe(point[name], str) for name in SETTING)


def _interval(point: pd.Series) -> str:
    """Return a predicted latency with its interval, if it has one."""
    return interval_ms(point["latency_s"], point["latency_low_s"], point["latency_high_s"])
