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

SMALL, LARGE = 64, 128
"""Most pixels of a small image's height (CIFAR-10 has 32), least of a large one's (ImageNet has 224)."""


def pruned_wins_on_small_images_only(evidence: Evidence) -> list[Claim]:
    """Return whether the fastest tuned pruned network beats the fastest tuned dense one, by dataset."""
    return [
        _pruned_against_dense(evidence.points, "cifar10", wins=True),
        _pruned_against_dense(evidence.points, "imagenet", wins=False),
    ]


def _pruned_against_dense(points: pd.DataFrame, dataset: str, wins: bool) -> Claim:
    size = f"as {'small' if wins else 'large'} as {dataset}'s"
    faster = "mostly faster" if wins else "not mostly faster"
    text = f"on images {size}, tuned, pruned networks are {faster} than dense"
    tuned = _alike(points, dataset) & (points["tuning"] == "tuned")
    dense, pruned = tuned & (points["kind"] == "dense"), tuned & (points["kind"] == "pruned")
    pairs = paired(points, dense, pruned, SAME_SETTING)
    if pairs.empty:
        needed = {f"images {size}, tuned, dense": dense, f"images {size}, tuned, pruned": pruned}
        return open_claim(text, points, needed, "both in one setting")
    mostly = 2 * int((pairs["order"] > 0).sum()) > len(pairs)
    numbers = f"pruned {orders(pairs)} settings{alone(points, dense | pruned, SAME_SETTING, pairs)}"
    return Claim(text, HOLDS if mostly is wins else FAILS, numbers, cases=len(pairs))


def _alike(points: pd.DataFrame, dataset: str) -> pd.Series:
    """Return which points have the dataset's images or others of such a size, which take the same time."""
    height = points["image_height"]
    sized = height <= SMALL if dataset == "cifar10" else height >= LARGE
    alike: pd.Series = sized.fillna(False).astype(bool) | (points["dataset_name"] == dataset).fillna(False)
    return alike


OBSERVATION = Observation(
    "II",
    "Tuned, pruned networks beat the dense ones on CIFAR-10, but not on ImageNet.",
    "tuned dense and pruned points on images as small as cifar10's and as large as imagenet's",
    pruned_wins_on_small_images_only,
)
