"""Time by class of operator: what a network spends its time in, forward and backward."""

from __future__ import annotations

from dlas.analysis.matching import SETTING, natural
from dlas.analysis.roles import DENSE
from dlas.face.reporting import charts
from dlas.face.reporting.blocks import Absent, Figure, Panel, Section
from dlas.face.reporting.context import Context, significant
from dlas.face.reporting.palette import HUES, NEUTRAL, rgb
from dlas.stack import TRAINING
from dlas.sweep.rows.operators import CLASSES

PLACE = (*(axis for axis in SETTING if axis != "batch"), "compiler")
"""Axes whose values have a bar of their own."""
MOST_BARS = 30
"""Most bars of a panel."""
COLOURS = {name: rgb(*hue) for name, hue in zip(CLASSES, (*HUES[: len(CLASSES) - 1], NEUTRAL), strict=True)}
PASSES = ("forward", "backward")


def section(context: Context) -> Section | Absent:
    """Return the shares of the classes of operators, a bar for each network and compiler."""
    title = "Time by class of operator"
    points = shown(context)
    if not points:
        return Absent(title, "points whose layers were timed and tell their operators")
    lead = (
        "A bar is one network: without compression where that was measured, at its largest batch, with its "
        "fastest algorithm. Operators that a runtime computes together count for the first of them. In "
        "training the shares are of forward and backward pass together."
    )
    return Section("operators", title, lead, [_figure(context, points)])


def shown(context: Context) -> list[int]:
    """Return the points with a bar: at most :data:`MOST_BARS`, the slowest left out."""
    best: dict[tuple[str, ...], tuple[tuple[bool, int, float], int]] = {}
    for line, layers in context.details.layers.items():
        if not any(layer.operator_class not in ("", "other") for layer in layers):
            continue
        place = tuple(context.value(line, axis) for axis in PLACE)
        compressed = context.value(line, "compression") != DENSE
        order = (compressed, -int(context.points["batch"].iloc[line]), context.median_ms(line))
        if place not in best or order < best[place][0]:
            best[place] = order, line
    fastest = sorted((line for _, line in best.values()), key=context.median_ms)[:MOST_BARS]
    return sorted(fastest, key=lambda line: natural(context.name(line)))


def _figure(context: Context, points: list[int]) -> Figure:
    shares = {line: _shares(context, line) for line in points}
    training = {line for line in points if context.value(line, "task") == TRAINING}
    panels = [
        Panel(title, _rows(context, {line: shares[line] for line in points if line in own}, which))
        for title, own, which in (
            ("inference", set(points) - training, 0),
            ("training, forward", training, 0),
            ("training, backward", training, 1),
        )
        if own
    ]
    sums = {name: sum(sum(own.get(name, (0, 0))) for own in shares.values()) for name in CLASSES}
    longest = max(sums, key=lambda name: sums[name])
    sentence = f"On average {longest} takes {100 * sums[longest] / len(points):.0f} % of the operators' time."
    spec = charts.bars("share of the operators' time", COLOURS, percent=True)
    title = "Share of time by class of operator"
    return Figure("operators", title, sentence, panels, {"": spec}, COLOURS, filtered=False)


def _shares(context: Context, line: int) -> dict[str, tuple[float, float]]:
    """Return the share of each class in a point's time, forward and backward."""
    times: dict[str, tuple[float, float]] = {}
    for layer in context.details.layers[line]:
        forward, backward = times.get(layer.operator_class, (0.0, 0.0))
        times[layer.operator_class] = forward + layer.latency_s, backward + layer.backward_s
    total = sum(map(sum, times.values())) or 1.0
    return {name: (forward / total, backward / total) for name, (forward, backward) in times.items()}


def _rows(
    context: Context, shares: dict[int, dict[str, tuple[float, float]]], which: int
) -> list[dict[str, object]]:
    return [
        {
            "y": context.name(line),
            "c": name,
            "x": significant(own[name][which]),
            "o": order,
            "p": line,
            "t": f"{name}, {PASSES[which]}: {own[name][which]:.1%}",
        }
        for line, own in shares.items()
        for order, name in enumerate(CLASSES)
        if own.get(name, (0.0, 0.0))[which] > 0
    ]
