"""Observation IX: the best algorithm for pruned networks.

Only untuned points are checked: the paper could tune sparse code on CPUs only, where
its Table 3 has direct as the best.  Its Tables 4 and 6 do not support the second
half either: there spatial pack wins most often on GPUs.
"""

from __future__ import annotations

from dlas.analysis.observations.evidence import SAME_SETTING, Claim, Evidence, Observation, wins


def gemm_on_cpus_and_direct_on_gpus(evidence: Evidence) -> list[Claim]:
    """Return whether sparse GEMM wins mostly on CPUs, and sparse direct on GPUs."""
    points = evidence.points
    sparse = points["algorithm_name"] != points["primitive"]
    chosen = sparse & (points["kind"] == "pruned") & (points["tuning"] == "untuned")
    same = [*SAME_SETTING, "compiler", "compression"]
    return [
        wins(
            f"on {processor.upper()}s, sparse {primitive} is mostly the fastest",
            points,
            (chosen & (points["processor"] == processor)).fillna(False),
            primitive,
            same,
            f"pruned, sparse algorithms, untuned, on {processor.upper()}s",
        )
        for processor, primitive in (("cpu", "gemm"), ("gpu", "direct"))
    ]


OBSERVATION = Observation(
    "IX",
    "For pruned networks, sparse GEMM is mostly the fastest on CPUs and sparse direct on GPUs.",
    "untuned pruned points of several sparse algorithms, on CPUs and on GPUs",
    gemm_on_cpus_and_direct_on_gpus,
)
