"""What compression and tuning gain, in sentences."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pandas as pd

from dlas.analysis.matching import identity, paired
from dlas.face.reporting.context import Context
from dlas.face.reporting.sections.highlights import Item
from dlas.sweep.rows.labels import factor, listed

MOST_TECHNIQUES = 3
SCHEDULES = {"scheduled": "A hand-written schedule", "tuned": "A searched schedule"}


def compression(context: Context) -> Iterator[Item]:
    """Yield each technique's gain beside its promise, and from where sparse code pays."""
    gains = context.evidence.speedups
    compared = (gains if len(gains) else context.evidence.all_speedups).dropna(subset=["share"])
    # What compression gains without any schedule is of no use to anybody who has one.
    scheduled = compared[compared["tuning"] != "untuned"]
    compared = scheduled if len(scheduled) else compared
    best = compared.sort_values("achieved", ascending=False).drop_duplicates("compression_name")
    for row in best.head(MOST_TECHNIQUES).to_dict("records"):
        how = context.name(row["point"], ("model", "algorithm", "compiler", "batch"))
        yield (
            f"By the work that it saves, {row['compression']} would make the network "
            f"{factor(row['expected'])} times as fast; it makes it {factor(row['achieved'])} times as fast "
            f"({how}).",
            row["point"],
        )
    if len(compared) > 1:
        yield _promises(compared), None
    yield from _break_even(context)


def _promises(compared: pd.DataFrame) -> str:
    kept, slower = int((compared["share"] >= 1).sum()), int((compared["achieved"] < 1).sum())
    return (
        f"Beside dense code of the same compiler, {kept} of {len(compared)} compressed networks are as "
        f"fast as the work saved promises, {slower} are slower than the dense one, and half of them reach at "
        f"most {100 * compared['share'].median():.0f} % of the promise."
    )


def _break_even(context: Context) -> Iterator[Item]:
    """Yield the least share of weights removed from which sparse code is faster than dense code."""
    if not context.speed_curves:
        return
    first = min(context.speed_curves, key=lambda curve: curve.break_even)
    who = f"{first.technique}, {first.algorithm}, {first.compiler}"
    if np.isposinf(first.break_even):
        most = max(max(curve.ratios) for curve in context.speed_curves)
        yield (
            f"Even with {100 * most:.0f} % of the weights gone, sparse code is slower than dense code.",
            None,
        )
        return
    yield (
        "Share of the weights that must go before sparse code overtakes the fastest dense code: "
        f"{first.in_words} ({who}).",
        first.points[-1],
    )


def tuning(context: Context) -> Iterator[Item]:
    """Yield how much faster schedules make the same algorithm than code without one."""
    points = context.points
    for kind, what in SCHEDULES.items():
        chosen = points["tuning"] == kind
        pairs = paired(points, points["tuning"] == "untuned", chosen, identity(("compiler",)))
        if pairs.empty:
            continue
        mean = float(np.exp(np.log(pairs["ratio"]).mean()))
        names = listed(sorted(points.loc[chosen, "compiler"].unique()))
        slower = int((pairs["order"] < 0).sum())
        yield (
            f"{what} ({names}) makes code {factor(mean)} times as fast as the same algorithm without one, "
            f"the mean of {len(pairs)} pairs, and slower in {slower or 'none'} of them.",
            None,
        )
