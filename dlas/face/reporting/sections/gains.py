"""What compression and tuning gain, in sentences."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pandas as pd

from dlas.analysis.matching import identity, in_all, paired
from dlas.analysis.roles import DENSE
from dlas.face.reporting.context import Context
from dlas.face.reporting.sections.highlights import Item, left_out
from dlas.sweep.rows.labels import factor, listed, number_of

MOST_TECHNIQUES = 3
FEWEST_HALVED = 3
"""Least number of networks whose median tells of a half of them."""
SCHEDULES = {"scheduled": "A hand-written schedule", "tuned": "A searched schedule"}


def compression(context: Context) -> Iterator[Item]:
    """Yield each technique's gain beside its promise, and from where sparse code pays."""
    gains = context.evidence.speedups
    compared = (gains if len(gains) else context.evidence.all_speedups).dropna(subset=["share"])
    # What compression gains without any schedule is of no use to anybody who has one.
    scheduled = compared[compared["tuning"] != "untuned"]
    compared = scheduled if len(scheduled) else compared
    best = compared.sort_values("achieved", ascending=False).drop_duplicates("compression_name")
    names = context.points["compression_name"]
    for row in best.head(MOST_TECHNIQUES).to_dict("records"):
        without = left_out(context, np.flatnonzero(names == row["compression_name"]).tolist())
        how = context.name(row["point"], ("model", "algorithm", "compiler", "batch"))
        yield (
            f"By the work that it saves, {row['compression']} would make the network "
            f"{factor(row['expected'])} times as fast; it makes it {factor(row['achieved'])} times as fast "
            f"({how}){without}.",
            row["point"],
        )
    if len(compared) > 1:
        yield _promises(compared, left_out(context, np.flatnonzero(names != DENSE).tolist())), None
    yield from _break_even(context)


def _promises(compared: pd.DataFrame, without: str) -> str:
    kept, slower = int((compared["share"] >= 1).sum()), int((compared["achieved"] < 1).sum())
    told = [
        f"{kept} of {len(compared)} compressed networks {_are(kept)} as fast as the work saved promises",
        f"{slower} {_are(slower)} slower than the dense one",
    ]
    if len(compared) >= FEWEST_HALVED:
        told.append(f"half of them reach at most {100 * compared['share'].median():.0f} % of the promise")
    return f"Beside dense code of the same compiler, {listed(told)}{without}."


def _are(count: int) -> str:
    return "is" if count == 1 else "are"


def _break_even(context: Context) -> Iterator[Item]:
    """Yield the least share of weights removed from which sparse code is faster than dense code."""
    if not context.speed_curves:
        return
    first = min(context.speed_curves, key=lambda curve: curve.break_even)
    without = left_out(context, np.flatnonzero(context.points["compression_name"] != DENSE).tolist())
    who = f"{first.technique}, {first.algorithm}, {first.compiler}"
    if np.isposinf(first.break_even):
        most = max(max(curve.ratios) for curve in context.speed_curves)
        yield (
            f"Even with {100 * most:.0f} % of the weights gone, sparse code is slower than dense code"
            f"{without}.",
            None,
        )
        return
    yield (
        "Share of the weights that must go before sparse code overtakes the fastest dense code: "
        f"{first.in_words} ({who}){without}.",
        first.points[-1],
    )


def tuning(context: Context) -> Iterator[Item]:
    """Yield how much faster schedules make the same algorithm than code without one.

    Kinds of schedules stand beside each other, so that their means are over the points that all of them have.
    """
    points, same = context.points, identity(("compiler",))
    found = {
        kind: paired(points, points["tuning"] == "untuned", points["tuning"] == kind, same)
        for kind in SCHEDULES
    }
    found = {kind: pairs for kind, pairs in found.items() if len(pairs)}
    several = len(found) > 1
    shared = dict(zip(found, in_all([*found.values()], same), strict=True)) if several else found
    apart = several and not any(map(len, shared.values()))
    for kind, pairs in (found if apart else shared).items():
        mean = float(np.exp(np.log(pairs["ratio"]).mean()))
        names = listed(sorted(points.loc[points["tuning"] == kind, "compiler"].unique()))
        slower = int((pairs["order"] < 0).sum())
        without = left_out(context, np.flatnonzero(points["tuning"].isin(["untuned", kind])).tolist())
        yield (
            f"{SCHEDULES[kind]} ({names}) makes code {factor(mean)} times as fast as the same algorithm "
            f"without one, the mean of {_pairs(len(pairs), several and not apart)}, and slower in "
            f"{slower or 'none'} of them{without}.",
            None,
        )
    if apart:
        yield "No point has both kinds of schedules, so that neither is known to be the faster.", None


def _pairs(count: int, shared: bool) -> str:
    """Return a number of pairs in words, and whether both kinds of schedules have them."""
    text = number_of(count, "pair")
    return f"{text} that both kinds of schedules have" if shared else text
