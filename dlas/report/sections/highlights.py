"""What stands out in a sweep: failures, what tuning changed, which axes depend on each other."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from dlas.analysis.observations import OPEN
from dlas.analysis.observations.tuning_changes_the_best import tuning_gains_and_reorders
from dlas.report.context import Context
from dlas.rows.labels import points as counted
from dlas.rows.labels import shortened

Item = tuple[str, int | None]
MOST_REASON = 100


def failures(context: Context) -> Iterator[Item]:
    """Yield how many points have no right answer in time, and the most frequent reason."""
    bad = context.points[context.points["status"] != "ok"]
    if bad.empty:
        return
    reasons = bad["reason"].fillna("not told").map(lambda text: shortened(str(text), MOST_REASON))
    reason, count = Counter(reasons).most_common(1)[0]
    told = f"{counted(len(bad))} of {len(context.points):,} have no right answer in time. "
    told += f"The most frequent reason, {count} times: {reason}"
    yield told, int(reasons.index[(reasons == reason).argmax()])


def tuning(context: Context) -> Iterator[Item]:
    """Yield what tuning gained, and what it changed."""
    names = ("Tuned code against untuned", "Tuning changed the best algorithm or compression")
    for name, claim in zip(names, tuning_gains_and_reorders(context.evidence), strict=True):
        if claim.verdict != OPEN:
            yield f"{name}: {claim.numbers}.", None


def interaction(context: Context) -> Iterator[Item]:
    """Yield the pair of axes that depend on each other most."""
    strongest = next((one for one in context.interactions if one.known), None)
    if strongest is not None:
        yield (
            f"Of all pairs of axes, {strongest.axes[0]} and {strongest.axes[1]} depend on each other most: "
            f"{100 * strongest.shares[2]:.1f} % of the variation of latency is explained by both together "
            f"only ({counted(strongest.matched)} matched).",
            None,
        )
