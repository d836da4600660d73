"""The sweep's time by step and compiler."""

from __future__ import annotations

import pandas as pd

from dlas.analysis.matching import natural
from dlas.face.reporting import charts
from dlas.face.reporting.blocks import Absent, Figure, Panel, Section
from dlas.face.reporting.context import Context, significant
from dlas.face.reporting.palette import HUES, rgb
from dlas.face.tables.table import Cell, Column, Line, Table, numbers_of
from dlas.sweep.rows.columns import SECONDS
from dlas.sweep.rows.labels import duration
from dlas.sweep.rows.labels import points as counted

UNITS = (("h", 3600), ("min", 60), ("s", 1))
COLOURS = {column: rgb(*hue) for column, hue in zip(SECONDS, HUES, strict=False)}


def section(context: Context) -> Section | Absent:
    """Return seconds by step and compiler."""
    title = "Time of the sweep"
    seconds = context.points[list(SECONDS)]
    total = float(seconds.sum().sum())
    if total <= 0:
        return Absent(title, "rows with the times of their steps")
    lead = (
        f"{duration(total)} of steps for {counted(int((seconds.sum(axis=1) > 0).sum()))}. A step counts for "
        "the point that ran it; other points took its artifact from the cache. Times of parallel steps are "
        "added; times in which they stood still for the measurement of other points are not."
    )
    return Section("costs", title, lead, [_figure(context, total), _table(seconds, total)])


def _figure(context: Context, total: float) -> Figure:
    unit, size = next((unit for unit in UNITS if total >= 3 * unit[1]), UNITS[-1])
    seconds = context.points.groupby("compiler")[list(SECONDS)].sum()
    rows = [
        {
            "y": compiler,
            "c": _step(column),
            "x": significant(took / size),
            "o": order,
            "t": f"{compiler}, {_step(column)}: {duration(took)}",
        }
        for compiler in sorted(seconds.index, key=natural)
        for order, column in enumerate(SECONDS)
        if (took := float(seconds[column][compiler])) > 0
    ]
    sums = seconds.sum()
    colours = {_step(column): colour for column, colour in COLOURS.items() if sums[column] > 0}
    longest = str(sums.idxmax())
    share = 100 * float(sums[longest]) / total
    sentence = f"The step {_step(longest)} took the most time: {share:.0f} % of all steps."
    spec = charts.bars(f"time in steps, {unit}", colours)
    title = "Time by compiler and step"
    return Figure("seconds", title, sentence, [Panel("", rows)], {"": spec}, colours, filtered=False)


def _table(seconds: pd.DataFrame, total: float) -> Table:
    lines = []
    for column in SECONDS:
        taken = seconds[column][seconds[column] > 0]
        if taken.empty:
            continue
        cells = [
            Cell(_step(column)),
            Cell(duration(float(taken.sum()))),
            Cell(f"{100 * taken.sum() / total:.1f} %"),
            Cell(str(len(taken))),
            Cell(duration(float(taken.median()))),
            Cell(duration(float(taken.max())), point=int(taken.index[int(taken.argmax())])),
        ]
        lines.append(Line(cells))
    columns = [Column("step"), *numbers_of("together", "share", "points", "median", "longest")]
    return Table("seconds-by-step", "Time by step, over the points that ran it.", columns, lines)


def _step(column: str) -> str:
    return column.removesuffix("_s")
