"""Observation I: multiply-adds, accuracy and latency."""

from __future__ import annotations

import pandas as pd

from dlas.analysis.correlations import QUANTITIES, strength
from dlas.analysis.observations.evidence import (
    FAILS,
    HOLDS,
    OPEN,
    Claim,
    Evidence,
    Observation,
    by_algorithms,
    open_claim,
)

PAIRS = (("macs", "accuracy"), ("macs", "latency_s"), ("accuracy", "latency_s"))


def no_two_rank_alike(evidence: Evidence) -> list[Claim]:
    """Return, for each pair of the three, whether their rank correlation is weak in every place."""
    ranked = evidence.correlations
    return [_weak(evidence.points, ranked, first, second) for first, second in PAIRS]


def _weak(points: pd.DataFrame, ranked: pd.DataFrame, first: str, second: str) -> Claim:
    text = f"{QUANTITIES[first]} and {QUANTITIES[second]} are not strongly rank correlated"
    lines = ranked[(ranked["first"] == first) & (ranked["second"] == second)]
    correlated = lines[lines["missing"] == ""]
    if lines.empty:
        return open_claim(text, points, by_algorithms(points))
    if correlated.empty:
        return Claim(text, OPEN, missing=", ".join(sorted(set(lines["missing"]))))
    strengths = [strength(low, high) for low, high in zip(correlated["low"], correlated["high"], strict=True)]
    numbers = "; ".join(
        f"{line.correlation:.2f} [{line.low:.2f}, {line.high:.2f}] over {line.networks} networks"
        for line in correlated.head(3).itertuples()
    )
    if len(correlated) > 3:
        numbers += f"; {len(correlated)} places in all: {', '.join(_counted(strengths))}"
    if "strong" in strengths:
        return Claim(text, FAILS, numbers, cases=len(correlated))
    if "open" in strengths:
        return Claim(text, OPEN, numbers, "more networks: the intervals leave it open", len(correlated))
    return Claim(text, HOLDS, numbers, cases=len(correlated))


def _counted(strengths: list[str]) -> list[str]:
    return [
        f"{strengths.count(strength_name)} {strength_name}"
        for strength_name in ("strong", "weak", "open")
        if strength_name in strengths
    ]


OBSERVATION = Observation(
    "I",
    "Multiply-adds, accuracy and latency of networks are not strongly correlated.",
    "several networks in one place, with multiply-adds, accuracy and latency",
    no_two_rank_alike,
)
