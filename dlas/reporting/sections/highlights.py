"""What stands out in a sweep: failures, what tuning changed, which axes depend on each other."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from dlas.analysis.observations import OPEN
from dlas.analysis.observations.tuning_changes_the_best import tuning_gains_and_reorders
from dlas.reporting.context import Context
from dlas.rows.labels import points as counted
from dlas.rows.labels import shortened

Item = tuple[str, int | None]
MOST_REASON = 100


def failures(context: Context) -> Iterator[Item]:
    """Yield the number of points that are not ok, and the most frequent reason."""
    bad = context.points[context.points["status"] != "ok"]
    if bad.empty:
        return
    reasons = bad["reason"].fillna("unknown").map(lambda text: shortened(str(text), MOST_REASON))
    reason, count = Counter(reasons).most_common(1)[0]
    text = f"{counted(len(bad))} of {len(context.points):,} are not ok. "
    text += f"The most frequent reason, {count} times: {reason}"
    yield text, int(reasons.index[(reasons == reason).argmax()])


def tuning(context: Context) -> Iterator[Item]:
    """Yield the gain from tuning, and whether it changed the best choice."""
    names = ("Tuned code against untuned", "Tuning changed the best algorithm or compression")
    for name, claim in zip(names, tuning_gains_and_reorders(context.evidence), strict=True):
        if claim.verdict != OPEN:
            yield f"{name}: {claim.numbers}.", None


def interaction(context: Context) -> Iterator[Item]:
    """Yield the pair of axes with the largest interaction."""
    strongest = next((pair for pair in context.interactions if pair.comparable), None)
    if strongest is not None:
        yield (
            f"Of all pairs of axes, {strongest.axes[0]} and {strongest.axes[1]} interact most: their "
            f"interaction explains {100 * strongest.shares[2]:.1f} % of the variation of log latency "
            f"({counted(strongest.matched)} matched).",
            None,
        )
