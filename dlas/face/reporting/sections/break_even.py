"""The break-even: the sparsity above which a compressed network is faster than dense code."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from dlas.analysis.break_even import SpeedCurve
from dlas.analysis.matching import SETTING
from dlas.face.reporting import charts
from dlas.face.reporting.blocks import Absent, Figure, Panel, Section
from dlas.face.reporting.context import Context, significant
from dlas.face.tables.table import Cell, Column, Line, Table, columns_of, numbers_of
from dlas.sweep.rows.labels import factor, times_as_fast


def section(context: Context) -> Section | Absent:
    """Return speed-up by sparsity, and where each curve crosses that of dense code."""
    title = "Break-even of sparse code"
    speed_curves = context.speed_curves
    if not speed_curves:
        return Absent(
            title, "points of a network pruned to several levels, and dense ones in the same setting"
        )
    lead = (
        "Each line is one algorithm under one compiler. The baseline is the fastest dense point of the "
        "setting, of any algorithm, compiler or library. A ring marks the break-even, interpolated between "
        "measured levels linearly in the logarithm of the speed-up. Where a library also ran the pruned "
        "network, in turns with the sparse code, that time is the baseline."
    )
    return Section("break-even", title, lead, [_figure(context, speed_curves), _table(context, speed_curves)])


def _figure(context: Context, speed_curves: Sequence[SpeedCurve]) -> Figure:
    colours = context.colours("algorithm")
    panels: dict[str, list[dict[str, Any]]] = {}
    for number, curve in enumerate(speed_curves):
        panels.setdefault(_place(context, curve), []).extend(_rows(context, curve, number))
    crossed = sum(np.isfinite(curve.break_even) for curve in speed_curves)
    above = sum(curve.break_even == -np.inf for curve in speed_curves)
    sentence = (
        f"Above the dashed line, sparse code is faster than dense code: {crossed} of {len(speed_curves)} "
        f"lines cross it, {above} lie above it from their first level on."
    )
    spec = charts.rising("convolution weights removed, %", "speed-up over the fastest dense code", colours)
    drawn = [Panel(title, rows) for title, rows in panels.items()]
    return Figure("break-even", "Speed by sparsity", sentence, drawn, {"": spec}, colours, "algorithm")


def _place(context: Context, curve: SpeedCurve) -> str:
    """Return the title of a curve's panel: setting, technique and compiler."""
    setting = context.called(curve.setting) if set(SETTING) & set(context.varying) else ""
    return " · ".join(filter(None, (setting, curve.technique, curve.compiler)))


def _rows(context: Context, curve: SpeedCurve, number: int) -> list[dict[str, Any]]:
    common = {"c": curve.algorithm, "d": str(number)}
    rows = [
        {
            **common,
            "p": line,
            "x": significant(100 * ratio),
            "y": significant(speed),
            "lo": significant(low),
            "hi": significant(high),
            "e": False,
            "t": f"{times_as_fast(speed)} [{factor(low)}, {factor(high)}] as {_dense(context, curve)}",
        }
        for line, ratio, (speed, low, high) in zip(curve.points, curve.ratios, curve.speeds, strict=True)
    ]
    if np.isfinite(curve.break_even):
        text = f"{curve.algorithm}: as fast as {_dense(context, curve)} at {curve.in_words}"
        place = {"x": significant(100 * curve.break_even), "y": 1, "lo": None, "hi": None}
        rows.append({**common, **place, "p": curve.points[-1], "e": True, "t": text})
    return rows


def _dense(context: Context, curve: SpeedCurve) -> str:
    return f"{context.value(curve.dense, 'algorithm')} under {context.value(curve.dense, 'compiler')}"


def _table(context: Context, speed_curves: Sequence[SpeedCurve]) -> Table:
    columns = [
        *columns_of("setting", "compression", "algorithm", "compiler"),
        *numbers_of("break-even", "highest level", "speed-up there [95 % interval]"),
        Column("fastest dense"),
    ]
    caption = (
        "The share of the convolutions' weights removed above which each algorithm is at least as fast as "
        "the fastest dense point of its setting."
    )
    return Table("break-even", caption, columns, [_line(context, curve) for curve in speed_curves], names=4)


def _line(context: Context, curve: SpeedCurve) -> Line:
    speed, low, high = curve.speeds[-1]
    style = "bad" if curve.break_even == np.inf else "good"
    cells = [
        Cell(context.called(curve.setting)),
        Cell(curve.technique),
        Cell(curve.algorithm),
        Cell(curve.compiler),
        Cell(curve.in_words, style=style),
        Cell(f"{100 * curve.ratios[-1]:.0f} %"),
        Cell(f"{factor(speed)} [{factor(low)}, {factor(high)}]", point=curve.points[-1]),
        Cell(_dense(context, curve), point=curve.dense),
    ]
    values = {**curve.setting, "algorithm": curve.algorithm, "compiler": curve.compiler}
    return Line(cells, context.filters(values))
