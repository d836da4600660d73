"""Pareto sets of accuracy and a cost."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pandas as pd

from dlas.analysis.matching import PLACE_OF_SEEDS, groups, result_in, timed
from dlas.stack.types import Floats

COSTS = {
    "latency_s": "latency",
    "energy_j": "energy",
    "model_bytes": "size of the network",
    "peak_memory_bytes": "peak memory",
}


def accuracies(points: pd.DataFrame) -> pd.Series:
    """Return each network's accuracy in its framework, or else that of its build."""
    return points["accuracy"].fillna(points["compiled_accuracy"])


def pareto(points: pd.DataFrame, cost: str) -> pd.Series:
    """Return which points have a result of the cost and are in the Pareto set of their place.

    Parameters
    ----------
    points : DataFrame
        What :func:`dlas.analysis.roles.with_roles` returned.
    cost : str
        A column; less is better.

    Returns
    -------
    Series of bool
        A point is dominated by one that is at least as accurate, costs no more,
        and is better in one of the two.
    """
    usable = timed(points) if cost == "latency_s" else result_in(points, cost)
    accuracy = accuracies(points).where(usable).to_numpy(dtype=float)
    amount = points[cost].to_numpy(dtype=float, na_value=np.nan)
    optimal = np.zeros(len(points), dtype=bool)
    for lines in groups(points, PLACE_OF_SEEDS):
        optimal[lines] = undominated(amount[lines], accuracy[lines])
    return pd.Series(optimal, index=points.index)


def undominated(cost: Floats, accuracy: Floats) -> npt.NDArray[np.bool_]:
    """Return which items are dominated by none; items without a cost or accuracy are not among them."""
    complete = np.flatnonzero(~np.isnan(cost) & ~np.isnan(accuracy))
    order = complete[np.lexsort((-accuracy[complete], cost[complete]))]
    optimal = np.zeros(len(cost), dtype=bool)
    if len(order):
        best = np.maximum.accumulate(accuracy[order])
        before = np.concatenate(([-np.inf], best[:-1]))
        optimal[order] = accuracy[order] > before
        # Equal in both: neither is better than the other.
        equal = (np.diff(cost[order]) == 0) & (np.diff(accuracy[order]) == 0)
        for place in np.flatnonzero(equal) + 1:
            optimal[order[place]] = optimal[order[place - 1]]
    return optimal
