"""How tuning went: the best schedule so far against the trials it took."""

from __future__ import annotations

from typing import Any

from dlas.analysis.matching import SETTING, natural
from dlas.report import charts
from dlas.report.blocks import Absent, Figure, Panel, Section
from dlas.report.context import Context, significant
from dlas.rows.details import SearchCurve
from dlas.rows.labels import factor
from dlas.rows.labels import points as counted

PLACE = (*SETTING, "compression", "compiler")
MOST_CURVES = 3000
"""Workloads on the page; those of the fastest points are kept."""
LATE = 0.75
"""A search that still got better after this share of its trials may not have been at its end."""


def section(context: Context) -> Section | Absent:
    """Return the curves of tuning, a panel for each setting, compression and compiler."""
    title = "How tuning went"
    shown = _kept(context)
    if not shown:
        return Absent(title, "tuned points whose sweep left curves of the search")
    curves = [(line, curve) for line in shown for curve in context.details.curves[line]]
    late = sum(curve.best[-1][0] > LATE * curve.trials for _, curve in curves)
    lead = (
        "Each line is one workload, a convolution that one or several layers share: how many times as fast "
        "as the first schedule that worked the best so far is."
    )
    left = len(context.details.curves) - len(shown)
    if left:
        lead += f" {counted(left)}, the slowest, are left out to keep this page small."
    sentence = (
        f"A line that still rises at its right end would gain from more trials: {late} of {len(curves)} got "
        "better in the last quarter of theirs."
    )
    colours = context.colours("algorithm")
    spec = charts.lines("trials", "times the speed of the first schedule", colours, step=True)
    panels = _panels(context, curves)
    figure = Figure("tuning-curves", "Best so far", sentence, panels, {"": spec}, colours, "algorithm")
    return Section("curves", title, lead, [figure])


def _kept(context: Context) -> list[int]:
    shown, count = [], 0
    known = [line for line, curves in context.details.curves.items() if curves]
    for line in sorted(known, key=lambda line: (not context.timed[line], context.median_ms(line))):
        count += len(context.details.curves[line])
        if count > MOST_CURVES:
            break
        shown.append(line)
    return shown


def _panels(context: Context, curves: list[tuple[int, SearchCurve]]) -> list[Panel]:
    places: dict[str, list[dict[str, Any]]] = {}
    for line, curve in curves:
        places.setdefault(context.name(line, PLACE), []).extend(_rows(context, line, curve))
    return [Panel(title, places[title]) for title in sorted(places, key=natural)]


def _rows(context: Context, line: int, curve: SearchCurve) -> list[dict[str, Any]]:
    """Return a workload's line: a step where it got better, drawn to its last trial."""
    first, last = curve.best[0][1], curve.best[-1][1]
    steps = curve.best if curve.best[-1][0] == curve.trials else [*curve.best, (curve.trials, last)]
    layers = ", ".join(curve.layers[:3]) + (
        f" and {len(curve.layers) - 3} more" if len(curve.layers) > 3 else ""
    )
    text = f"{layers}: {factor(first / last)}x in {curve.trials} trials"
    algorithm = context.value(line, "algorithm")
    return [
        {
            "p": line,
            "x": trials,
            "y": significant(first / time_s),
            "c": algorithm,
            "d": f"{line} {curve.layers[0] if curve.layers else ''}",
            "t": text,
        }
        for trials, time_s in steps
    ]
