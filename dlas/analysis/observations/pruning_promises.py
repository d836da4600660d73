"""Observation X: what pruning promises and what comes of it."""

from __future__ import annotations

from dlas.analysis.observations.evidence import FAILS, HOLDS, Claim, Evidence, Observation, open_claim

RARELY = 0.25
"""Less often than this is rarely."""


def pruning_rarely_keeps_its_promise(evidence: Evidence) -> list[Claim]:
    """Return whether few pruned networks are as much faster as their ratio promises."""
    points = evidence.points
    text = "pruned networks rarely reach their expected speed-up"
    gains = evidence.speedups
    pruned = gains[gains["kind"] == "pruned"]
    known = pruned.dropna(subset=["share"])
    if known.empty:
        kind = points["kind"]
        needed = {"dense": kind == "dense", "pruned": kind == "pruned"}
        return [open_claim(text, points, needed, "both in one setting, with the ratio reached")]
    reached = int((known["share"] >= 1).sum())
    numbers = f"{reached} of {len(known)} reach it; the median gets {known['share'].median():.1%} of it" + (
        f"; {len(pruned) - len(known)} more cannot be compared" if len(pruned) > len(known) else ""
    )
    return [Claim(text, HOLDS if reached < RARELY * len(known) else FAILS, numbers)]


OBSERVATION = Observation(
    "X",
    "Pruning rarely brings the speed-up over dense code that its ratio promises.",
    "dense and pruned points in the same settings, with the ratio reached",
    pruning_rarely_keeps_its_promise,
)
