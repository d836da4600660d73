"""Observation V: smaller types on different hardware."""

from __future__ import annotations

from collections.abc import Sequence

import pandas as pd

from dlas.analysis.matching import SETTING, by_device
from dlas.analysis.observations.evidence import (
    FAILS,
    HOLDS,
    Claim,
    Evidence,
    Observation,
    by_algorithms,
    open_claim,
)

DIFFERS = 1.25
"""Least ratio of the largest to the smallest speed-up, in the median case, for speed-ups that differ."""


def gain_depends_on_hardware_and_type(evidence: Evidence) -> list[Claim]:
    """Return whether a type's speed-up differs between devices, and between types on one device."""
    points = evidence.points
    gains = evidence.speedups
    types = by_device(gains[(gains["kind"] == "types") & gains["achieved"].notna()])
    network = ["dataset", "model", "batch", "task", "seed", "compiler"]
    return [
        _spread(
            points,
            types,
            [*network, "compression"],
            "hardware",
            "one type gains differently on other hardware",
        ),
        _spread(points, types, [*SETTING, "compiler"], "compression", "types gain differently on one device"),
    ]


def _spread(points: pd.DataFrame, types: pd.DataFrame, same: Sequence[str], over: str, text: str) -> Claim:
    among = types.groupby([*same], dropna=False)
    spread = among["achieved"].max() / among["achieved"].min()
    spread = spread[among[over].nunique() > 1]
    if spread.empty:
        needed = by_algorithms(points, ("dense", "types"))
        return open_claim(text, points, needed, f"several values of {over} in otherwise equal points")
    differs = spread.median() >= DIFFERS
    numbers = (
        f"the largest speed-up is {spread.median():.2f} times the smallest in the median of {len(spread)} "
        f"cases, {spread.max():.2f} at most"
    )
    return Claim(text, HOLDS if differs else FAILS, numbers, cases=len(spread))


OBSERVATION = Observation(
    "V",
    "What a smaller type gains depends on the hardware and on the type.",
    "dense points and several types, on several devices",
    gain_depends_on_hardware_and_type,
)
