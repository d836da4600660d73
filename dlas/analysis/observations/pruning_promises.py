"""Observation X: expected and achieved speed-ups of pruning."""

from __future__ import annotations

from dlas.analysis.observations.evidence import (
    FAILS,
    HOLDS,
    Claim,
    Evidence,
    Observation,
    by_algorithms,
    open_claim,
)

RARELY = 0.25
"""Rarely: in less than this share of cases."""


def pruning_rarely_keeps_its_promise(evidence: Evidence) -> list[Claim]:
    """Return whether few pruned networks reach the speed-up expected from their ratio."""
    points = evidence.points
    text = "pruned networks rarely reach their expected speed-up"
    gains = evidence.speedups
    pruned = gains[gains["kind"] == "pruned"]
    compared = pruned.dropna(subset=["share"])
    if compared.empty:
        needed = by_algorithms(points, ("dense", "pruned"))
        others = "both in one setting under one compiler, with the ratio reached"
        return [open_claim(text, points, needed, others)]
    reached = int((compared["share"] >= 1).sum())
    numbers = (
        f"{reached} of {len(compared)} reach it; the median gets {compared['share'].median():.1%} of it"
        + (f"; {len(pruned) - len(compared)} more cannot be compared" if len(pruned) > len(compared) else "")
    )
    verdict = HOLDS if reached < RARELY * len(compared) else FAILS
    return [Claim(text, verdict, numbers, cases=len(compared))]


OBSERVATION = Observation(
    "X",
    "Pruning rarely brings the speed-up over dense code that its ratio promises.",
    "dense and pruned points in the same settings, with the ratio reached",
    pruning_rarely_keeps_its_promise,
)
