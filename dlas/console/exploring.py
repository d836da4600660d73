"""What came of exploring a study: how much was measured, and how far the predictions can be trusted."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

from rich.console import Group, RenderableType
from rich.text import Text

from dlas.learning.exploring.share import Rest
from dlas.learning.exploring.tallies import Known
from dlas.learning.intervals import LEVEL
from dlas.rows.labels import points


def summary(total: int, known: Mapping[int, Known], rest: Rest, refused: int) -> RenderableType:
    """Return what was measured, what was predicted and what was not, a line each.

    Parameters
    ----------
    total : int
        Points that can be measured.
    known : mapping of int to Known
        Those that were.
    rest : Rest
        What is said of the others.
    refused : int
        Points that are unsupported at once.
    """
    timed = sum(each.seconds is not None for each in known.values())
    lines = [f"measured: {points(len(known))} of {total:,}, {timed:,} of them with a time"]
    if refused:
        lines[0] += f"; {points(refused)} more unsupported here"
    if len(rest.rows):
        intervals = f"intervals of {LEVEL:.0%}" if (rest.low == rest.low).any() else "no intervals"
        lines.append(f"predicted: {points(len(rest.rows))}, with {intervals}")
    if rest.error is not None:
        lines[-1] += f"; measured points, each predicted from the others, err by {rest.error:.1%} on average"
    doubtful = sum(map(bool, rest.doubts))
    if doubtful:
        lines.append(f"in doubt: {points(doubtful)}, because of values with which few points have a time")
    for reason, count in Counter(rest.left_out.values()).most_common():
        lines.append(f"not predicted: {points(count)}: {reason}")
    return Group(*map(Text, lines))
