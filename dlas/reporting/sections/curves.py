"""Tuning curves: the best schedule so far by the number of trials."""

from __future__ import annotations

from typing import Any

from dlas.analysis.matching import SETTING, natural
from dlas.reporting import charts
from dlas.reporting.blocks import Absent, Figure, Panel, Section
from dlas.reporting.context import Context, significant
from dlas.rows.details import SearchCurve
from dlas.rows.labels import points as counted
from dlas.rows.labels import times_as_fast

PLACE = (*SETTING, "compression", "compiler")
MOST_CURVES = 3000
"""Most workloads on the page: those of the fastest points."""
LATE = 0.75
"""A search that still improved after this share of its trials may not have converged."""


def section(context: Context) -> Section | Absent:
    """Return the curves of tuning, a panel for each setting, compression and compiler."""
    title = "Tuning curves"
    shown = _fastest(context)
    if not shown:
        return Absent(title, "tuned points with search curves")
    curves = [(line, curve) for line in shown for curve in context.details.curves[line]]
    late = sum(curve.best[-1][0] > LATE * curve.trials for _, curve in curves)
    lead = (
        "Each line is one workload, a convolution that one or several layers share: the speed-up of the best "
        "schedule so far over the first valid one."
    )
    left = len(context.details.curves) - len(shown)
    if left:
        lead += f" {counted(left)}, the slowest, are left out to keep this page small."
    sentence = (
        f"A line that still rises at its right end may gain from more trials: {late} of {len(curves)} got "
        "better in their last quarter."
    )
    colours = context.colours("algorithm")
    spec = charts.lines("trials", "speed-up over the first schedule", colours, step=True)
    panels = _panels(context, curves)
    figure = Figure("tuning-curves", "Best so far", sentence, panels, {"": spec}, colours, "algorithm")
    return Section("curves", title, lead, [figure])


def _fastest(context: Context) -> list[int]:
    shown, count = [], 0
    tuned = [line for line, curves in context.details.curves.items() if curves]
    for line in sorted(tuned, key=lambda line: (not context.timed[line], context.median_ms(line))):
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
    """Return a workload's line: a step at each improvement, up to its last trial."""
    first, last = curve.best[0][1], curve.best[-1][1]
    steps = curve.best if curve.best[-1][0] == curve.trials else [*curve.best, (curve.trials, last)]
    layers = ", ".join(curve.layers[:3]) + (
        f" and {len(curve.layers) - 3} more" if len(curve.layers) > 3 else ""
    )
    text = f"{layers}: {times_as_fast(first / last)} after {curve.trials} trials"
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
