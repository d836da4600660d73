"""Observation II: tuned pruned networks on small and on large images."""

from __future__ import annotations

import pandas as pd

from dlas.analysis.matching import paired
from dlas.analysis.observations.evidence import (
    FAILS,
    HOLDS,
    SAME_SETTING,
    Claim,
    Evidence,
    Observation,
    alone,
    open_claim,
    orders,
)

SMALL, LARGE = "cifar10", "imagenet"


def pruned_wins_on_small_images_only(evidence: Evidence) -> list[Claim]:
    """Return whether the fastest tuned pruned network beats the fastest tuned dense one, by dataset."""
    points = evidence.points
    return [
        _pruned_against_dense(points, SMALL, wins=True),
        _pruned_against_dense(points, LARGE, wins=False),
    ]


def _pruned_against_dense(points: pd.DataFrame, dataset: str, wins: bool) -> Claim:
    text = f"on {dataset}, tuned, pruned networks are {'mostly' if wins else 'not mostly'} faster than dense"
    there = (points["dataset_name"] == dataset) & (points["tuning"] == "tuned")
    dense, pruned = there & (points["kind"] == "dense"), there & (points["kind"] == "pruned")
    pairs = paired(points, dense, pruned, SAME_SETTING)
    if pairs.empty:
        needed = {f"{dataset}, tuned, dense": dense, f"{dataset}, tuned, pruned": pruned}
        return open_claim(text, points, needed, "both in one setting")
    mostly = 2 * int((pairs["order"] > 0).sum()) > len(pairs)
    numbers = f"pruned {orders(pairs)} settings{alone(points, dense | pruned, SAME_SETTING, pairs)}"
    return Claim(text, HOLDS if mostly is wins else FAILS, numbers)


OBSERVATION = Observation(
    "II",
    "Tuned, pruned networks beat the dense ones on CIFAR-10, but not on ImageNet.",
    "tuned dense and pruned points on cifar10 and on imagenet",
    pruned_wins_on_small_images_only,
)
