"""Observation VII: the best dense algorithm on CPUs."""

from __future__ import annotations

from dlas.analysis.observations.evidence import SAME_SETTING, Claim, Evidence, Observation, wins


def spatial_pack_wins_on_cpus(evidence: Evidence) -> list[Claim]:
    """Return whether spatial pack is the fastest tuned algorithm for most dense networks on CPUs."""
    points = evidence.points
    chosen = (
        (points["kind"] == "dense") & (points["tuning"] == "tuned") & (points["processor"] == "cpu")
    ).fillna(False)
    text = "spatial_pack is mostly the fastest"
    return [wins(text, points, chosen, "spatial_pack", [*SAME_SETTING, "compiler"], "dense, tuned, on CPUs")]


OBSERVATION = Observation(
    "VII",
    "For dense networks on CPUs, tuned, spatial pack is mostly the fastest convolution.",
    "tuned dense points on CPUs, of spatial_pack and of another algorithm",
    spatial_pack_wins_on_cpus,
)
