"""Time per layer of a chosen point."""

from __future__ import annotations

from typing import Any

from dlas.analysis.matching import SETTING
from dlas.face.reporting import charts
from dlas.face.reporting.blocks import Absent, Chooser, Figure, Panel, Section
from dlas.face.reporting.context import Context, significant
from dlas.face.reporting.palette import HUES, rgb
from dlas.sweep.rows.labels import points as counted
from dlas.sweep.rows.layer_times import LARGEST_COST, compared_sums

MOST_LAYERS = 150_000
"""Most layers on the page, over all points: about 2 MB."""
MOST_BARS = 40
"""Most layers drawn of a network: its slowest."""
COLOURS = (rgb(*HUES[0]), rgb(*HUES[1]))
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
        "Layers are timed in runs of their own with a profiler, whose cost counts as time of the layers. "
        "Where they add up to more than the network takes without it, the same cost is taken from each, at "
        f"most {LARGEST_COST:.0%} of what the shortest takes, and the rest is scaled to its latency."
    )
    left = len(context.details.layers) - len(points)
    if left:
        lead += f" {counted(left)}, the slowest, are left out to keep this page small."
    called = names(context, first, second)
    colours = dict(zip(called, COLOURS, strict=True))
    spec = charts.bars("time, µs", colours, grouped=True)
    lines = [line for line in (first, second) if line is not None]
    panel = Panel("; ".join(sums(context, line) for line in lines), _rows(context, first, second))
    figure = Figure("layers", title, _sentence(context, first), [panel], {"": spec}, colours, filtered=False)
    return Section("layers", title, lead, [Chooser(figure, first, second)])


def names(context: Context, first: int, second: int | None) -> list[str]:
    """Return the names of the two points that are chosen initially, which are the legend's labels."""
    beside = "nothing" if second is None else context.name(second)
    return [context.name(first), beside if beside != context.name(first) else f"{beside}, the second"]


def sums(context: Context, line: int) -> str:
    """Return a point's name with the sum of its layers as profiled and the network's latency."""
    profiled_s = context.details.profiled_s[line]
    return f"{context.name(line)}: {compared_sums(profiled_s, context.median_ms(line) * 1e-3)}"


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
    lines = [line for line in (first, second) if line is not None]
    chosen = dict(zip(names(context, first, second), lines, strict=False))
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
