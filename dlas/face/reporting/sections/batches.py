"""Latency and memory by batch size, a line for each compression: what larger batches cost."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from dlas.analysis.matching import SETTING, natural
from dlas.face.reporting import charts
from dlas.face.reporting.blocks import Absent, Figure, Panel, Section
from dlas.face.reporting.context import Context, significant
from dlas.sweep.rows.labels import amount, milliseconds

PLACE = (*(axis for axis in SETTING if axis != "batch"), "algorithm", "compiler")
"""Axes whose values have a panel of their own."""
FEWEST = 3
"""Batch sizes that a line takes at least."""
MOST_LINES = 6
"""Most lines of a panel: the mildest compression, the strongest, and those evenly between."""
MB = 1e6


class ByBatch(NamedTuple):
    """A quantity of a figure by batch size, with its values and their texts by point."""

    name: str
    quantity: str
    unit: str
    values: dict[int, float]
    texts: dict[int, str]


def section(context: Context) -> Section | Absent:
    """Return the figures of latency and of memory by batch size.

    References
    ----------
    perf4sight, appendix B.1 and Figure 5.
    """
    title = "By batch size"
    groups = _groups(context)
    if not groups:
        return Absent(title, f"points that differ in nothing but the batch, at {FEWEST} sizes or more")
    figures = [figure for figure in (_latency(context, groups), _memory(context, groups)) if figure.panels]
    lead = (
        "Each line is one network at its compression. The slope is what one more image costs, where the line "
        "begins what a step costs whatever the batch."
    )
    if any(len(lines) == MOST_LINES for lines in groups.values()):
        lead += f" At most {MOST_LINES} compressions a panel are drawn, evenly spread."
    return Section("batches", title, lead, figures)


Groups = dict[tuple[str, ...], dict[str, list[int]]]
"""By panel and by compression, the lines of the points in the order of their batch sizes."""


def _groups(context: Context) -> Groups:
    """Return the points to draw."""
    groups: Groups = {}
    for (place, compression), lines in _all_lines(context).items():
        if len({context.value(line, "batch") for line in lines}) >= FEWEST:
            groups.setdefault(place, {})[compression] = lines
    return {place: _spread(by_compression) for place, by_compression in groups.items()}


def _all_lines(context: Context) -> dict[tuple[tuple[str, ...], str], list[int]]:
    """Return all timed points by panel and compression, smaller batches first."""
    found: dict[tuple[tuple[str, ...], str], list[int]] = {}
    batches = context.points["batch"].to_numpy(dtype=int)
    for line in sorted(np.flatnonzero(context.timed), key=lambda line: batches[line]):
        place = tuple(context.value(int(line), axis) for axis in PLACE)
        found.setdefault((place, context.value(int(line), "compression")), []).append(int(line))
    return found


def _spread(by_compression: dict[str, list[int]]) -> dict[str, list[int]]:
    """Return at most :data:`MOST_LINES` compressions, evenly spread, in natural order."""
    ordered = sorted(by_compression, key=natural)
    count = min(MOST_LINES, len(ordered))
    chosen = sorted({round(place) for place in np.linspace(0, len(ordered) - 1, count)})
    return {ordered[place]: by_compression[ordered[place]] for place in chosen}


def _latency(context: Context, groups: Groups) -> Figure:
    values = {line: context.median_ms(line) for line in _lines(groups)}
    texts = {line: f"{milliseconds(value / 1e3)} ms" for line, value in values.items()}
    return _figure(context, groups, ByBatch("latency-by-batch", "Latency", "ms", values, texts))


def _memory(context: Context, groups: Groups) -> Figure:
    peaks = context.points["peak_memory_bytes"].to_numpy(dtype=float, na_value=np.nan)
    values = {line: peaks[line] / MB for line in _lines(groups) if np.isfinite(peaks[line])}
    texts = {line: amount(value * MB, "B") for line, value in values.items()}
    return _figure(context, groups, ByBatch("memory-by-batch", "Peak memory", "MB", values, texts))


def _figure(context: Context, groups: Groups, shown: ByBatch) -> Figure:
    """Return one quantity by batch size, a panel for each network."""
    colours = context.colours("compression")
    used = {compression for lines in groups.values() for compression in lines}
    legend = {label: colour for label, colour in colours.items() if label in used}
    panels = [
        Panel(context.name(next(iter(lines.values()))[0], PLACE), rows)
        for lines in groups.values()
        if (rows := _rows(context, lines, shown))
    ]
    title, sentence = f"{shown.quantity} by batch size", _linearity(groups, shown.values, context)
    spec = charts.lines("batch", f"{shown.quantity.lower()}, {shown.unit}", legend)
    return Figure(shown.name, title, sentence, panels, {"": spec}, legend, "compression", across=3)


def _rows(context: Context, lines: dict[str, list[int]], shown: ByBatch) -> list[dict[str, Any]]:
    return [
        {
            "p": line,
            "x": int(context.value(line, "batch")),
            "y": significant(shown.values[line]),
            "c": compression,
            "d": compression,
            "t": f"{context.name(line)}: {shown.texts[line]}",
        }
        for compression, own in lines.items()
        for line in own
        if line in shown.values
    ]


def _linearity(groups: Groups, values: dict[int, float], context: Context) -> str:
    """Return how well straight lines describe the points, as a sentence."""
    errors = []
    for lines in (own for by_compression in groups.values() for own in by_compression.values()):
        known = [line for line in lines if line in values]
        if len(known) < FEWEST:
            continue
        batches = np.array([float(context.value(line, "batch")) for line in known])
        measured = np.array([values[line] for line in known])
        slope, start = np.polyfit(batches, measured, 1, w=1 / measured)
        errors.append(float(np.mean(np.abs(slope * batches + start - measured) / measured)))
    if not errors:
        return ""
    off = f"{np.median(errors):.1%}"
    return f"A straight line through the points of a network is off by {off}, the median over networks."


def _lines(groups: Groups) -> Sequence[int]:
    return [line for by_compression in groups.values() for own in by_compression.values() for line in own]
