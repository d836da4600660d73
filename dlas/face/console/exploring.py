"""What came of exploring a study: how much was measured, and how far the predictions can be trusted."""

from __future__ import annotations

from collections import Counter

from rich.console import Group, RenderableType
from rich.text import Text

from dlas.prediction.adaptive.share.share import RestPredictions
from dlas.prediction.adaptive.share.strategy import ShareStrategy
from dlas.prediction.learning.intervals import LEVEL
from dlas.sweep.rows.labels import points, rows

ENOUGH = 2
"""Times as many points with a time as have every value once: with fewer, most values were measured once."""


def summary(strategy: ShareStrategy, rest: RestPredictions) -> RenderableType:
    """Return what was measured, what was predicted and what was not, a line each."""
    total, known, cover = len(strategy.space), strategy.known, len(strategy.first)
    refused, outdated = strategy.unsupported, strategy.outdated
    timed = sum(each.seconds is not None for each in known.values())
    lines = [f"measured: {points(len(known))} of {total:,}, {timed:,} of them with a time"]
    if refused:
        lines[0] += f"; {points(refused)} more unsupported here"
    if outdated:
        lines.append(
            f"out of date: {rows(outdated)} of earlier sources or settings, which nothing here relies on; "
            "tables still show them"
        )
    if len(rest.rows):
        intervals = f"intervals of {LEVEL:.0%}" if (rest.low == rest.low).any() else "no intervals"
        lines.append(f"predicted: {points(len(rest.rows))}, with {intervals}")
        if rest.error is not None:
            own = f"measured points, each predicted from the others, err by {rest.error:.1%} on average"
            lines[-1] += f"; {own}"
        if timed < ENOUGH * cover:
            lines.append(
                f"few: {points(timed)} with a time, and it takes {cover:,} to have every value once. "
                "Predictions are rough, and what looks fastest may not be; a larger share goes on from here"
            )
    doubtful = sum(map(bool, rest.doubts))
    if doubtful:
        lines.append(f"in doubt: {points(doubtful)}, because of values with which few points have a time")
    for reason, count in Counter(rest.left_out.values()).most_common():
        lines.append(f"not predicted: {points(count)}: {reason}")
    return Group(*map(Text, lines))
