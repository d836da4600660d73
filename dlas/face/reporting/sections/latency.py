"""Latency by algorithm and compression, for each model and device, as in the paper's Figures 4 to 7."""

from __future__ import annotations

from collections import Counter
from typing import Any

from dlas.analysis.matching import SETTING, groups, natural
from dlas.analysis.roles import TUNINGS
from dlas.face.reporting import charts
from dlas.face.reporting.blocks import Absent, Figure, Panel, Section
from dlas.face.reporting.context import Context, scale
from dlas.sweep.rows.labels import points as counted
from dlas.sweep.study.parts import LIBRARY

MOST_MARKS = 60
"""Most marks of a panel; a setting with more is split by compiler."""


def section(context: Context) -> Section | Absent:
    """Return one figure, a panel for each setting."""
    title = "Latency by algorithm and compression"
    if not context.timed.any():
        return Absent(title, "a point with a time")
    lead = (
        "Each mark is a median with its 95 % interval; further left is faster. A hollow mark was measured on "
        "a disturbed machine. A point without a time shows its status instead."
    )
    return Section("latency", title, lead, [figure(context)])


def figure(context: Context) -> Figure:
    """Return latency as dots, one panel for each setting; large settings are split by compiler."""
    coloured = "compression" if "compression" in context.varying else "algorithm"
    colours = context.colours(coloured)
    panels = []
    for setting in groups(context.points, SETTING):
        split = len(setting) > MOST_MARKS
        parts = groups(context.points.iloc[setting], ["compiler"]) if split else [slice(None)]
        panels += [_panel(context, setting[part].tolist(), coloured, split) for part in parts]
    shown = [panel for panel in panels if any(row["x"] for row in panel.rows)]
    grouped = coloured == "compression"
    specs = {
        name: charts.intervals("latency, ms", colours, logarithmic=name == "log", grouped=grouped)
        for name in ("linear", "log")
    }
    sentence = _sentence(context, len(panels) - len(shown))
    return Figure("latency", "Latency", sentence, shown, specs, colours, coloured)


def _panel(context: Context, lines: list[int], coloured: str, split: bool) -> Panel:
    down = ("algorithm",) if split else ("compiler", "algorithm")
    rows = [
        {
            "p": line,
            "y": "own kernels" if split and _runtime(context, line) else context.name(line, down),
            "c": context.value(line, coloured),
            **context.drawn(line),
        }
        for line in sorted(lines, key=lambda line: _place(context, line))
    ]
    title = context.name(lines[0], (*SETTING, "compiler") if split else SETTING)
    return Panel(title, charts.stacked(rows), scale(row["x"] for row in rows))


def _runtime(context: Context, line: int) -> bool:
    return bool(context.value(line, "algorithm") == LIBRARY)


def _place(context: Context, line: int) -> tuple[Any, ...]:
    tuning = TUNINGS.index(str(context.points["tuning"].iat[line]))
    labels = (context.value(line, axis) for axis in ("compiler", "algorithm", "compression"))
    return (tuning, *map(natural, labels))


def _sentence(context: Context, empty: int) -> str:
    """Return which algorithms win how often, and how many points are not drawn."""
    contested = [
        standing for standing in context.standings if standing.overall.tried > 1 and standing.overall.points
    ]
    wins = Counter(context.value(standing.overall.points[0], "algorithm") for standing in contested)
    sentence = "Read each panel from left to right."
    if len(wins) and "algorithm" in context.varying:
        listed = ", ".join(f"{name} in {count}" for name, count in wins.most_common(3))
        sentence = f"Of {len(contested)} settings and compilers, the leftmost is {listed}."
    missing = int((~context.timed).sum())
    if missing:
        sentence += f" {counted(missing)} without a time stand at the left edge"
        sentence += f", and {empty} panels that hold nothing else are not drawn." if empty else "."
    return sentence
