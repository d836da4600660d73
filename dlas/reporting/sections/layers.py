"""Time per layer of a chosen point."""

from __future__ import annotations

from typing import Any

from dlas.analysis.matching import SETTING
from dlas.reporting import charts
from dlas.reporting.blocks import Absent, Chooser, Figure, Panel, Section
from dlas.reporting.context import Context, significant
from dlas.reporting.palette import HUES, rgb
from dlas.rows.labels import points as counted

MOST_LAYERS = 150_000
"""Most layers on the page, over all points: about 2 MB."""
MOST_BARS = 40
"""Most layers drawn of a network: its slowest."""
COLOURS = {"first": rgb(*HUES[0]), "second": rgb(*HUES[1])}
NETWORK = (*SETTING, "compression")


def section(context: Context) -> Section | Absent:
    """Return the layers of the fastest point beside those of another; a reader may choose other points."""
    title = "Time per layer"
    points = shown(context)
    if not points:
        return Absent(title, "points whose layers were timed")
    first = points[0]
    second = _beside(context, first, points)
    lead = (
        f"Choose one or two points. The {MOST_BARS} slowest layers are drawn in the order of the network. "
        "Layers are timed one by one, so that their times need not add up to the latency."
    )
    left = len(context.details.layers) - len(points)
    if left:
        lead += f" {counted(left)}, the slowest, are left out to keep this page small."
    spec = charts.bars("time, µs", COLOURS, grouped=True)
    names = [context.name(line) for line in (first, second) if line is not None]
    panel = Panel(" and ".join(names), _rows(context, first, second))
    figure = Figure("layers", title, _sentence(context, first), [panel], {"": spec}, COLOURS, filtered=False)
    return Section("layers", title, lead, [Chooser(figure, first, second)])


def shown(context: Context) -> list[int]:
    """Return the points whose layers are on the page: as many as fit, the fastest first."""
    points, count = [], 0
    for line in sorted(context.details.layers, key=context.median_ms):
        count += len(context.details.layers[line])
        if count > MOST_LAYERS:
            break
        points.append(line)
    return points


def _beside(context: Context, first: int, points: list[int]) -> int | None:
    """Return the fastest other point of the network and setting, preferably of another compiler."""
    same = [
        line
        for line in points
        if line != first and all(context.value(first, axis) == context.value(line, axis) for axis in NETWORK)
    ]
    compiler = context.value(first, "compiler")
    others = [line for line in same if context.value(line, "compiler") != compiler]
    return next(iter(others + same), None)


def _rows(context: Context, first: int, second: int | None) -> list[dict[str, Any]]:
    """Return the marks of one point's layers, or of two points' beside each other."""
    chosen = {"first": first} | ({} if second is None else {"second": second})
    times: dict[str, float] = {}
    for line in chosen.values():
        for layer in context.details.layers[line]:
            times[layer.name] = max(times.get(layer.name, 0.0), layer.latency_s)
    drawn = sorted(times, key=lambda name: -times[name])[:MOST_BARS]
    return [
        {
            "y": layer.name,
            "c": which,
            "x": significant(layer.latency_s * 1e6),
            "t": f"{layer.name}, {layer.algorithm}: {layer.latency_s * 1e6:.4g} µs",
        }
        for which, line in chosen.items()
        for layer in context.details.layers[line]
        if layer.name in drawn
    ]


def _sentence(context: Context, line: int) -> str:
    layers = context.details.layers[line]
    total = sum(layer.latency_s for layer in layers)
    longest = sorted(layers, key=lambda layer: -layer.latency_s)[:3]
    share = 100 * sum(layer.latency_s for layer in longest) / total if total else 0
    named = ", ".join(layer.name for layer in longest)
    return f"The fastest point spends {share:.0f} % of its layers' time in {named}."
