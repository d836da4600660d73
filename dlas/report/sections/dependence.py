"""Interactions: what two axes explain together, and which rankings flip."""

from __future__ import annotations

import numpy as np

from dlas.analysis.interactions import Interaction
from dlas.analysis.rankings import Ranking, rankings
from dlas.report import charts
from dlas.report.blocks import Absent, Block, Cell, Column, Figure, Line, Panel, Section, Table
from dlas.report.context import Context, significant
from dlas.report.palette import HUES, NEUTRAL, rgb
from dlas.rows.labels import MISSING
from dlas.rows.labels import points as counted

PARTS = ("first axis", "second axis", "both together", "the rest")
COLOURS = dict(zip(PARTS, (rgb(*HUES[0]), rgb(*HUES[5]), rgb(*HUES[1]), rgb(*NEUTRAL)), strict=True))


def section(context: Context) -> Section | Absent:
    """Return the analysis of variance, and the flips of rankings."""
    title = "Interactions"
    pairs = context.interactions
    if not pairs:
        return Absent(title, "two axes with more than one value each")
    lead = (
        "Whether the best choice on one axis depends on another. The analysis of variance is of the "
        "logarithm of latency, over complete blocks alone: every combination of the values compared has a "
        "time, and everything else is equal."
    )
    blocks: list[Block] = [_variance_figure(pairs)] if any(one.known for one in pairs) else []
    blocks.append(_variance_table(pairs))
    ranked = [one for one in rankings(context.points) if one.compared]
    if ranked:
        blocks += [_flip_figure(ranked), _flip_table(ranked, int((~context.timed).sum()))]
    return Section("interactions", title, lead, blocks)


def _variance_figure(pairs: list[Interaction]) -> Figure:
    rows = []
    for one in (one for one in pairs if one.known):
        names = (*one.axes, *PARTS[2:])
        for order, share in enumerate(one.shares):
            text = f"{_pair(one)}: {names[order]} {100 * share:.1f} %"
            rows.append({"y": _pair(one), "c": PARTS[order], "x": significant(share), "o": order, "t": text})
    first = next(one for one in pairs if one.known)
    sentence = (
        "The share of both together is what neither axis explains alone; it is largest for "
        f"{_pair(first)}, {100 * first.shares[2]:.1f} %."
    )
    spec = charts.bars("share of the variation of log latency", COLOURS, share=True)
    title = "What two axes explain"
    return Figure("interactions", title, sentence, [Panel("", rows)], {"": spec}, COLOURS, filtered=False)


def _variance_table(pairs: list[Interaction]) -> Table:
    lines = []
    for one in pairs:
        shares = [f"{100 * share:.1f} %" if one.known else MISSING for share in one.shares]
        noise = f"{100 * one.noise:.2f} %" if np.isfinite(one.noise) else MISSING
        values = ", ".join(
            f"{len(compared)} of {axis}" for axis, compared in zip(one.axes, one.values, strict=True)
        )
        cells = [
            Cell(_pair(one)),
            *map(Cell, shares),
            Cell(noise),
            Cell(f"{one.matched} of {one.total}"),
            Cell(str(one.blocks)),
            Cell(values if one.known else "no complete block"),
            Cell(_left_out(one)),
        ]
        lines.append(Line(cells))
    columns = [
        Column("axes"),
        *(Column(part, "explained by", number=True) for part in PARTS),
        Column("noise alone", number=True),
        Column("matched", number=True),
        Column("blocks", number=True),
        Column("values compared"),
        Column("left out", wide=True),
    ]
    caption = (
        "Analysis of variance of log latency. Noise alone is the share that both together would have if "
        "nothing but the uncertainty of the medians were at work. The rest is what changes from block to "
        "block."
    )
    return Table("variance", caption, columns, lines)


def _left_out(one: Interaction) -> str:
    """Return why points take no part, in numbers that add up."""
    gone = {"without a time": one.failed, "of runtimes": one.library, "in incomplete blocks": one.incomplete}
    return ", ".join(f"{count} {why}" for why, count in gone.items() if count) or "none"


def _flip_figure(ranked: list[Ranking]) -> Figure:
    rows = [
        {
            "y": one.ranked,
            "x": one.along,
            "v": significant(one.flipped / one.compared),
            "label": f"{100 * one.flipped / one.compared:.0f} %",
            "t": f"{one.ranked} along {one.along}: {one.flipped} of {one.compared} flip, {one.ties} ties",
        }
        for one in sorted(ranked, key=lambda one: (one.ranked, one.along))
    ]
    sentence = (
        "Down: the axis whose values are put in order by latency; across: the axis that changes meanwhile. "
        "In a dark field the order found in one place is not to be trusted in another."
    )
    spec = charts.heat("when this changes", "order of")
    return Figure("flips", "Orders that flip", sentence, [Panel("", rows)], {"": spec}, filtered=False)


def _flip_table(ranked: list[Ranking], failed: int) -> Table:
    lines = []
    for one in ranked:
        correlation = f"{one.correlation:.2f}" if np.isfinite(one.correlation) else MISSING
        seen = "; ".join(f"{text} ({count} of {compared})" for text, count, compared in one.examples)
        counts = [one.compared, one.kept, one.flipped, one.ties]
        cells = [Cell(one.ranked), Cell(one.along), *(Cell(str(count)) for count in counts)]
        lines.append(Line([*cells, Cell(correlation), Cell(seen or MISSING)]))
    columns = [
        Column("order of"),
        Column("along"),
        Column("compared", number=True),
        Column("kept", number=True),
        Column("flipped", number=True),
        Column("tie", number=True),
        Column("Kendall", number=True),
        Column("flips seen most often", wide=True),
    ]
    caption = (
        "Two values are compared at two places of another axis, everything else equal: their order is kept, "
        "it flips, or one of the comparisons is a tie, as the intervals overlap. Kendall's rank correlation "
        "goes by medians." + (f" {counted(failed)} without a time take no part." if failed else "")
    )
    return Table("flips", caption, columns, lines, names=2)


def _pair(one: Interaction) -> str:
    return " × ".join(one.axes)  # noqa: RUF001 - the sign of a product of axes
