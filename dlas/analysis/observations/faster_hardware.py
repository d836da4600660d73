"""Observation XIII: the faster of the paper's two CPUs and of its two GPUs."""

from __future__ import annotations

import itertools
from typing import Any

import pandas as pd

from dlas.analysis.matching import identity, paired
from dlas.analysis.observations.evidence import (
    Claim,
    Evidence,
    Observation,
    alone,
    majority,
    open_claim,
    orders,
)
from dlas.sweep.rows.columns import MACHINE

PAIRS = (("intel_i7_8700", "hikey_970_cpu"), ("agx_xavier_gpu", "hikey_970_gpu"))


def desktop_and_larger_board_win(evidence: Evidence) -> list[Claim]:
    """Return whether the i7 is mostly faster than the HiKey's CPU, and the Xavier's GPU than the HiKey's."""
    points = evidence.points
    return [_faster(points, *pair) for pair in PAIRS]


def _faster(points: pd.DataFrame, fast: str, slow: str) -> Claim:
    text = f"{fast} is mostly faster than {slow}"
    chosen = {name: points["hardware_name"] == name for name in (slow, fast)}
    machines = [points.loc[lines, MACHINE].drop_duplicates() for lines in chosen.values()]
    every = [
        paired(points, chosen[slow] & _on(points, a), chosen[fast] & _on(points, b), identity(("hardware",)))
        for a, b in itertools.product(*machines)
    ]
    pairs = pd.concat(every) if every else pd.DataFrame()
    if pairs.empty:
        return open_claim(text, points, chosen, "one point on both")
    left = alone(points, chosen[slow] | chosen[fast], identity(("hardware",)), pairs)
    return majority(
        text, int((pairs["order"] > 0).sum()), len(pairs), f"{orders(pairs)} matched points{left}"
    )


def _on(points: pd.DataFrame, machine: Any) -> pd.Series:
    """Return which points were measured on a machine, which may be unknown."""
    return points[MACHINE].isna() if pd.isna(machine) else (points[MACHINE] == machine).fillna(False)


OBSERVATION = Observation(
    "XIII",
    "The desktop CPU is mostly faster than the board's, and the larger board's GPU than the smaller one's.",
    "the same points on intel_i7_8700 and hikey_970_cpu, and on agx_xavier_gpu and hikey_970_gpu",
    desktop_and_larger_board_win,
)
