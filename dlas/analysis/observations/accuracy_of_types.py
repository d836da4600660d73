"""Observation VI: the loss of accuracy in float16 and int8."""

from __future__ import annotations

import pandas as pd

from dlas.analysis.observations.evidence import FAILS, HOLDS, OPEN, Claim, Evidence, Observation, losses

NEGLIGIBLE = 0.005
"""Half a percentage point."""
HALF, INTEGER = "float16", "int8"


def halves_are_free_integers_are_not(evidence: Evidence) -> list[Claim]:
    """Return whether float16 loses at most :data:`NEGLIGIBLE`, and int8 more than float16."""
    points = evidence.points
    networks = losses(points).dropna(subset=["loss"])
    half, integer = (networks[networks["compression_name"] == name] for name in (HALF, INTEGER))
    return [_negligible(half), _more(half, integer)]


def _negligible(half: pd.DataFrame) -> Claim:
    text = f"{HALF} costs at most half a point of accuracy"
    if half.empty:
        return Claim(text, OPEN, missing=f"accuracy of a network in {HALF} and dense")
    worst = half["loss"].max()
    mean = 100 * half["loss"].mean()
    numbers = f"{100 * worst:.2f} points at most, {mean:.2f} on average of {len(half)} networks"
    return Claim(text, HOLDS if worst <= NEGLIGIBLE else FAILS, numbers, cases=len(half))


def _more(half: pd.DataFrame, integer: pd.DataFrame) -> Claim:
    text = f"{INTEGER} costs more accuracy than {HALF}"
    same = ["dataset", "model", "seed"]
    both = half[[*same, "loss"]].merge(integer[[*same, "loss"]], on=same, suffixes=("_half", "_integer"))
    if both.empty:
        return Claim(text, OPEN, missing=f"accuracy of one network in {HALF}, {INTEGER} and dense")
    means = both["loss_half"].mean(), both["loss_integer"].mean()
    numbers = f"{100 * means[1]:.2f} against {100 * means[0]:.2f} points on average of {len(both)} networks"
    return Claim(text, HOLDS if means[1] > means[0] else FAILS, numbers, cases=len(both))


OBSERVATION = Observation(
    "VI",
    "float16 costs hardly any accuracy, and calibrated int8 costs some.",
    "accuracy of networks dense, in float16 and in int8",
    halves_are_free_integers_are_not,
)
