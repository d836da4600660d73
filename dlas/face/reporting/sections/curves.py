"""Tuning curves: the best schedule so far by the number of trials."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from dlas.analysis.matching import SETTING, natural
from dlas.face.reporting import charts
from dlas.face.reporting.blocks import Absent, Figure, Panel, Section
from dlas.face.reporting.context import Context, significant
from dlas.face.reporting.palette import HUES, NEUTRAL, rgb
from dlas.sweep.rows.details import SearchCurve
from dlas.sweep.rows.labels import listed, shortened, times_as_fast
from dlas.sweep.rows.labels import points as counted

PLACE = (*SETTING, "compression", "algorithm", "compiler")
RANKS = ("longest", "second", "third", "fourth", "fifth")
"""The workloads that are drawn, by the time that they take."""
OTHERS = "all others together"
COLOURS = {
    **{rank: rgb(*hue) for rank, hue in zip(RANKS, HUES, strict=False)},
    OTHERS: rgb(*NEUTRAL),
}
MOST_LINES = 3000
"""Most lines on the page: those of the fastest points."""
MOST_NAMED = 400
"""Most characters of the names of layers in a tooltip."""
LATE = 0.75
"""A search that still improved after this share of its trials may not have converged."""


def section(context: Context) -> Section | Absent:
    """Return the curves of tuning, a panel for each point."""
    title = "Tuning curves"
    shown = _fastest(context)
    if not shown:
        return Absent(title, "tuned points with search curves")
    curves = [curve for line in shown for curve in context.details.curves[line]]
    late = sum(curve.best[-1][0] > LATE * curve.trials for curve in curves)
    lead = (
        "Each line is one workload, a convolution that one or several layers share: the speed-up of the best "
        f"schedule so far over the first valid one. A panel draws the {len(RANKS)} workloads that take the "
        "longest in the tuned network, and adds the times of all others up to one line, which names them."
    )
    left = len(context.details.curves) - len(shown)
    if left:
        lead += f" {counted(left)}, the slowest, are left out to keep this page small."
    sentence = (
        f"A line that still rises at its right end may gain from more trials: {late} of {len(curves)} got "
        "better in their last quarter."
    )
    spec = charts.lines("trials", "speed-up over the first schedule", COLOURS, step=True)
    panels = [
        _panel(context, line) for line in sorted(shown, key=lambda line: natural(_called(context, line)))
    ]
    figure = Figure("tuning-curves", "Best so far", sentence, panels, {"": spec}, COLOURS, across=3)
    return Section("curves", title, lead, [figure])


def _fastest(context: Context) -> list[int]:
    shown, count = [], 0
    tuned = [line for line, curves in context.details.curves.items() if curves]
    for line in sorted(tuned, key=lambda line: (not context.timed[line], context.median_ms(line))):
        count += min(len(context.details.curves[line]), len(COLOURS))
        if count > MOST_LINES:
            break
        shown.append(line)
    return shown


def _called(context: Context, line: int) -> str:
    return context.name(line, PLACE)


def _panel(context: Context, line: int) -> Panel:
    """Return the workloads of a point that take the most time, and the others as one."""
    curves = sorted(context.details.curves[line], key=_seconds, reverse=True)
    alone = len(curves) if len(curves) <= len(COLOURS) - 1 else len(RANKS)
    rows = []
    for rank, curve in zip(RANKS, curves[:alone], strict=False):
        rows += _rows(line, rank, [curve])
    if curves[alone:]:
        rows += _rows(line, OTHERS, curves[alone:])
    drawn = f"{alone} of {len(curves)} workloads" if curves[alone:] else f"{len(curves)} workloads"
    return Panel(f"{_called(context, line)}: {drawn}", rows)


def _seconds(curve: SearchCurve) -> float:
    """Return the time of all layers of a workload under its best schedule."""
    return curve.best[-1][1] * max(len(curve.layers), 1)


def _rows(line: int, rank: str, curves: Sequence[SearchCurve]) -> list[dict[str, Any]]:
    """Return a line: a step wherever one of the workloads improves, up to the last trial."""
    last = max(curve.trials for curve in curves)
    steps = sorted({trials for curve in curves for trials, _ in curve.best} | {last})
    first_s = _sum_s(curves, steps[0])
    layers = [layer for curve in curves for layer in curve.layers] or ["unnamed"]
    gain = f"{times_as_fast(first_s / _sum_s(curves, last))} after {last} trials"
    text = shortened(f"{rank}, {gain}: {listed(layers)}", MOST_NAMED)
    return [
        {"p": line, "x": at, "y": significant(first_s / _sum_s(curves, at)), "c": rank, "d": rank, "t": text}
        for at in steps
    ]


def _sum_s(curves: Sequence[SearchCurve], trials: int) -> float:
    """Return the time of the workloads' layers after so many trials, or after their first valid one."""
    return sum(
        max(len(curve.layers), 1)
        * min([curve.best[0][1], *(time_s for at, time_s in curve.best if at <= trials)])
        for curve in curves
    )
