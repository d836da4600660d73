"""Observation IV: weight pruning against channel pruning."""

from __future__ import annotations

import pandas as pd

from dlas.analysis.matching import SETTING
from dlas.analysis.observations.evidence import (
    OPEN,
    Claim,
    Evidence,
    Observation,
    chosen_levels,
    majority,
    open_claim,
)

WEIGHTS, CHANNELS = "weight_pruning", "channel_pruning"
NETWORK = ["dataset", "model", "seed"]


def weights_gain_more_but_less_than_promised(evidence: Evidence) -> list[Claim]:
    """Return whether weight pruning prunes more, is faster, and reaches less of its expected speed-up."""
    points = evidence.points
    levels = chosen_levels(points[points["compression_name"].isin([WEIGHTS, CHANNELS, "none"])])
    gains = evidence.speedups
    chosen = gains.merge(levels[[*NETWORK, "compression"]], on=[*NETWORK, "compression"])
    return [
        _ratios(levels),
        _compared(points, chosen, "achieved", "weight pruning is mostly the faster of the two", more=True),
        _compared(
            points,
            chosen,
            "share",
            "weight pruning gets the smaller share of its expected speed-up",
            more=False,
        ),
    ]


def _ratios(levels: pd.DataFrame) -> Claim:
    text = "weight pruning mostly removes more before accuracy suffers"
    both = levels.pivot(index=NETWORK, columns="compression_name", values="ratio")
    if not {WEIGHTS, CHANNELS} <= set(both) or both[[WEIGHTS, CHANNELS]].dropna().empty:
        return Claim(text, OPEN, missing="the ratio reached by both techniques on one model")
    both = both[[WEIGHTS, CHANNELS]].dropna()
    further = int((both[WEIGHTS] > both[CHANNELS]).sum())
    return majority(text, further, len(both), f"a higher ratio in {further} of {len(both)} models")


def _compared(points: pd.DataFrame, chosen: pd.DataFrame, column: str, text: str, more: bool) -> Claim:
    same = [*SETTING, "compiler"]
    measured = chosen.dropna(subset=[column])
    both = measured.pivot(index=same, columns="compression_name", values=column)
    if not {WEIGHTS, CHANNELS} <= set(both) or both[[WEIGHTS, CHANNELS]].dropna().empty:
        needed = {name: points["compression_name"] == name for name in (WEIGHTS, CHANNELS)}
        return open_claim(text, points, needed, "both techniques and the dense network in one setting")
    both = both[[WEIGHTS, CHANNELS]].dropna()
    as_claimed = (both[WEIGHTS] > both[CHANNELS]) if more else (both[WEIGHTS] < both[CHANNELS])
    unit = {"achieved": "{:.2f} times as fast", "share": "{:.1%}"}[column]
    medians = " against ".join(unit.format(both[name].median()) for name in (WEIGHTS, CHANNELS))
    return majority(
        text,
        int(as_claimed.sum()),
        len(both),
        f"in {int(as_claimed.sum())} of {len(both)} settings; medians {medians}",
    )


OBSERVATION = Observation(
    "IV",
    "Weight pruning goes further and runs faster than channel pruning, but gets less of what it promises.",
    "dense, weight_pruning and channel_pruning points in the same settings",
    weights_gain_more_but_less_than_promised,
)
