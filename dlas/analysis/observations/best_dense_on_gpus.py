"""Observation VIII: the best dense algorithm on GPUs."""

from __future__ import annotations

from dlas.analysis.observations.evidence import SAME_SETTING, Claim, Evidence, Observation, wins


def direct_wins_on_gpus(evidence: Evidence) -> list[Claim]:
    """Return whether direct is the fastest tuned algorithm for most dense networks on GPUs."""
    points = evidence.points
    chosen = (
        (points["kind"] == "dense") & (points["tuning"] == "tuned") & (points["processor"] == "gpu")
    ).fillna(False)
    text = "direct is mostly the fastest"
    return [wins(text, points, chosen, "direct", [*SAME_SETTING, "compiler"], "dense, tuned, on GPUs")]


OBSERVATION = Observation(
    "VIII",
    "For dense networks on GPUs, tuned, direct is mostly the fastest convolution.",
    "tuned dense points on GPUs, of direct and of another algorithm",
    direct_wins_on_gpus,
)
