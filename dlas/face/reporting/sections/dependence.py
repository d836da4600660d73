"""Interactions of axes: analysis of variance, and rankings that flip."""

from __future__ import annotations

import numpy as np

from dlas.analysis.interactions import Interaction
from dlas.analysis.rankings import Ranking
from dlas.face.reporting import charts
from dlas.face.reporting.blocks import Absent, Block, Figure, Panel, Section
from dlas.face.reporting.context import Context, significant
from dlas.face.reporting.palette import HUES, NEUTRAL, rgb
from dlas.face.tables.table import Cell, Column, Line, Table, columns_of, numbers_of
from dlas.sweep.rows.labels import MISSING
from dlas.sweep.rows.labels import points as counted

PARTS = ("first axis", "second axis", "interaction", "residual")
COLOURS = dict(zip(PARTS, (rgb(*HUES[0]), rgb(*HUES[5]), rgb(*HUES[1]), rgb(*NEUTRAL)), strict=True))


def section(context: Context) -> Section | Absent:
    """Return the analysis of variance, and the flips of rankings."""
    title = "Interactions"
    pairs = context.interactions
    if not pairs:
        return Absent(title, "two axes with more than one value each")
    lead = (
        "Whether the best choice on one axis depends on another. The analysis of variance is of the "
        "logarithm of latency over complete blocks: every combination of the compared values has a time, and "
        "everything else is equal."
    )
    blocks: list[Block] = [_variance_figure(pairs)] if any(pair.comparable for pair in pairs) else []
    blocks.append(_variance_table(pairs))
    ranked = [ranking for ranking in context.rankings if ranking.compared]
    if ranked:
        blocks += [_flip_figure(ranked), _flip_table(ranked, int((~context.timed).sum()))]
    return Section("interactions", title, lead, blocks)


def _variance_figure(pairs: list[Interaction]) -> Figure:
    rows = []
    for pair in (pair for pair in pairs if pair.comparable):
        names = (*pair.axes, *PARTS[2:])
        for order, share in enumerate(pair.shares):
            text = f"{_pair(pair)}: {names[order]} {100 * share:.1f} %"
            rows.append({"y": _pair(pair), "c": PARTS[order], "x": significant(share), "o": order, "t": text})
    first = next(pair for pair in pairs if pair.comparable)
    sentence = (
        "The interaction is what neither axis explains alone; it is largest for "
        f"{_pair(first)}, {100 * first.shares[2]:.1f} %."
    )
    spec = charts.bars("share of the variation of log latency", COLOURS, share=True)
    title = "What two axes explain"
    return Figure("interactions", title, sentence, [Panel("", rows)], {"": spec}, COLOURS, filtered=False)


def _variance_table(pairs: list[Interaction]) -> Table:
    lines = []
    for pair in pairs:
        shares = [f"{100 * share:.1f} %" if pair.comparable else MISSING for share in pair.shares]
        noise = f"{100 * pair.noise:.2f} %" if np.isfinite(pair.noise) else MISSING
        values = ", ".join(
            f"{len(compared)} of {axis}" for axis, compared in zip(pair.axes, pair.values, strict=True)
        )
        cells = [
            Cell(_pair(pair)),
            *map(Cell, shares),
            Cell(noise),
            Cell(f"{pair.matched} of {pair.total}"),
            Cell(str(pair.blocks)),
            Cell(values if pair.comparable else "no complete block"),
            Cell(_left_out(pair)),
        ]
        lines.append(Line(cells))
    columns = [
        Column("axes"),
        *numbers_of(*PARTS, group="explained by"),
        *numbers_of("expected from noise", "matched", "blocks"),
        Column("values compared"),
        Column("left out", wide=True),
    ]
    caption = (
        "Analysis of variance of log latency. Expected from noise: the share that the interaction would have "
        "from the uncertainty of the medians alone. The residual is the variation of effects between blocks."
    )
    return Table("variance", caption, columns, lines)


def _left_out(pair: Interaction) -> str:
    """Return the numbers of points that are left out, by reason."""
    gone = {
        "without a time": pair.failed,
        "of runtimes": pair.library,
        "in incomplete blocks": pair.incomplete,
    }
    return ", ".join(f"{count} {why}" for why, count in gone.items() if count) or "none"


def _flip_figure(ranked: list[Ranking]) -> Figure:
    rows = [
        {
            "y": ranking.ranked,
            "x": ranking.along,
            "v": significant(ranking.flipped / ranking.compared),
            "label": f"{100 * ranking.flipped / ranking.compared:.0f} %",
            "t": f"{ranking.ranked} along {ranking.along}: "
            f"{ranking.flipped} of {ranking.compared} flip, {ranking.ties} ties",
        }
        for ranking in sorted(ranked, key=lambda ranking: (ranking.ranked, ranking.along))
    ]
    sentence = (
        "Down: the axis whose values are ranked by latency; across: the axis that changes. A dark field "
        "means that a ranking at one value of the axis across often does not hold at another."
    )
    spec = charts.heat("when this changes", "ranking of")
    return Figure("flips", "Rankings that flip", sentence, [Panel("", rows)], {"": spec}, filtered=False)


def _flip_table(ranked: list[Ranking], failed: int) -> Table:
    lines = []
    for ranking in ranked:
        correlation = f"{ranking.correlation:.2f}" if np.isfinite(ranking.correlation) else MISSING
        seen = "; ".join(f"{text} ({count} of {compared})" for text, count, compared in ranking.examples)
        counts = [ranking.compared, ranking.kept, ranking.flipped, ranking.ties]
        cells = [Cell(ranking.ranked), Cell(ranking.along), *(Cell(str(count)) for count in counts)]
        lines.append(Line([*cells, Cell(correlation), Cell(seen or MISSING)]))
    columns = [
        *columns_of("ranking of", "along"),
        *numbers_of("compared", "kept", "flipped", "tie", "Kendall"),
        Column("most frequent flips", wide=True),
    ]
    caption = (
        "Two values are compared at two values of another axis, everything else equal: their order is kept, "
        "it flips, or one of the comparisons is a tie, because the intervals overlap. Kendall's rank "
        "correlation is of medians." + (f" {counted(failed)} without a time are left out." if failed else "")
    )
    return Table("flips", caption, columns, lines, names=2)


def _pair(pair: Interaction) -> str:
    return " × ".join(pair.axes)  # noqa: RUF001 - the sign of a product of axes
