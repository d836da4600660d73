"""Observation XII: the gain from tuning for pruned networks."""

from __future__ import annotations

from dlas.analysis.matching import paired
from dlas.analysis.observations.evidence import (
    SAME_SETTING,
    Claim,
    Evidence,
    Observation,
    alone,
    majority,
    open_claim,
)


def pruned_gain_less_from_tuning(evidence: Evidence) -> list[Claim]:
    """Return whether tuning speeds most pruned networks up less than their dense network."""
    points = evidence.points
    text = "tuning mostly speeds a pruned network up less than the dense one"
    untuned, tuned = points["tuning"] == "untuned", points["tuning"] == "tuned"
    kind = points["kind"]
    gains = paired(points, untuned, tuned, [*SAME_SETTING, "compression", "kind"])
    dense = gains[gains["kind"] == "dense"][[*SAME_SETTING, "ratio"]]
    both = gains[gains["kind"] == "pruned"].merge(dense, on=SAME_SETTING, suffixes=("", "_dense"))
    if both.empty:
        needed = {
            f"{name}, {word}": (kind == name) & (points["tuning"] == word)
            for name in ("dense", "pruned")
            for word in ("untuned", "tuned")
        }
        return [open_claim(text, points, needed, "all four in one setting")]
    less = int((both["ratio"] < both["ratio_dense"]).sum())
    medians = f"{both['ratio'].median():.2f} against {both['ratio_dense'].median():.2f} times as fast"
    left = alone(points, kind == "pruned", [*SAME_SETTING, "compression"], both)
    return [majority(text, less, len(both), f"in {less} of {len(both)} cases; medians {medians}{left}")]


OBSERVATION = Observation(
    "XII",
    "Tuning speeds pruned networks up less than dense ones.",
    "dense and pruned points, both untuned and tuned, in the same settings",
    pruned_gain_less_from_tuning,
)
