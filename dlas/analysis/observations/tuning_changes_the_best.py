"""Observation XI: the gain from tuning, and the rankings that it changes."""

from __future__ import annotations

import numpy as np
import pandas as pd

from dlas.analysis.matching import groups, identity, paired
from dlas.analysis.observations.evidence import (
    FAILS,
    HOLDS,
    SAME_SETTING,
    Claim,
    Evidence,
    Observation,
    alone,
    open_claim,
)
from dlas.analysis.winners import Times

MUCH = 2.0
"""Least speed-up of code that is much faster."""


def tuning_gains_and_reorders(evidence: Evidence) -> list[Claim]:
    """Return whether tuned code is much faster, and whether the best choice changes."""
    points = evidence.points
    return [_gain(points), _changes(points)]


def _needed(points: pd.DataFrame) -> dict[str, pd.Series]:
    return {name: points["tuning"] == name for name in ("untuned", "tuned")}


def _gain(points: pd.DataFrame) -> Claim:
    text = "tuned code is on average at least twice as fast"
    needed = _needed(points)
    pairs = paired(points, needed["untuned"], needed["tuned"], identity(("compiler",)))
    if pairs.empty:
        return open_claim(text, points, needed, "one point both untuned and tuned")
    mean = float(np.exp(np.log(pairs["ratio"]).mean()))
    slower = int((pairs["order"] < 0).sum())
    left = alone(points, needed["untuned"] | needed["tuned"], identity(("compiler",)), pairs)
    numbers = (
        f"{mean:.2f} times as fast, geometric mean of {len(pairs)} matched points; slower in {slower}{left}"
    )
    return Claim(text, HOLDS if mean >= MUCH else FAILS, numbers, cases=len(pairs))


def _changes(points: pd.DataFrame) -> Claim:
    text = "the best algorithm or compression changes in some settings"
    times, needed = Times(points), _needed(points)
    choices = (points["primitive"] + " on " + points["compression"]).astype(str).to_numpy()
    changed, total, example = 0, 0, ""
    for lines in groups(points, SAME_SETTING):
        winners = [times.fastest(lines[needed[name].to_numpy(dtype=bool)[lines]]).points for name in needed]
        before, after = ([choices[line] for line in lines] for lines in winners)
        tried = set(choices[lines])
        if not before or not after or len(tried) < 2:
            continue
        total += 1
        if not set(before) & set(after):
            changed, example = changed + 1, example or f", e.g. from {before[0]} to {after[0]}"
    if not total:
        return open_claim(text, points, needed, "several algorithms or compressions both untuned and tuned")
    numbers = f"in {changed} of {total} settings{example}"
    return Claim(text, HOLDS if changed else FAILS, numbers, cases=total)


OBSERVATION = Observation(
    "XI",
    "Tuning makes code much faster, and can change which algorithm or compression is best.",
    "points both untuned and tuned, of several algorithms or compressions",
    tuning_gains_and_reorders,
)
