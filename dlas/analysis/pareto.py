"""The points that no other point beats in accuracy and in a cost at once."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pandas as pd

from dlas.analysis.matching import PLACE_OF_SEEDS, groups

COSTS = {"latency_s": "latency", "model_bytes": "size of the network", "peak_memory_bytes": "peak memory"}


def accuracies(points: pd.DataFrame) -> pd.Series:
    """Return each network's accuracy; where its framework gave none, its build's."""
    return points["accuracy"].fillna(points["compiled_accuracy"])


def pareto(points: pd.DataFrame, cost: str) -> pd.Series:
    """Return which points are ``ok`` and beaten by no other of the same place.

    Parameters
    ----------
    points : DataFrame
        What :func:`dlas.analysis.roles.with_roles` returned.
    cost : str
        A column of which less is better.

    Returns
    -------
    Series of bool
        A point is beaten by one that is at least as accurate and costs no more,
        and is better in one of the two.
    """
    accuracy = accuracies(points).where(points["status"] == "ok").to_numpy(dtype=float)
    amount = points[cost].to_numpy(dtype=float, na_value=np.nan)
    unbeaten = np.zeros(len(points), dtype=bool)
    for lines in groups(points, PLACE_OF_SEEDS):
        unbeaten[lines] = undominated(amount[lines], accuracy[lines])
    return pd.Series(unbeaten, index=points.index)


def undominated(cost: npt.NDArray[np.float64], accuracy: npt.NDArray[np.float64]) -> npt.NDArray[np.bool_]:
    """Return which of several things nothing else beats; what lacks either number is not among them."""
    known = np.flatnonzero(~np.isnan(cost) & ~np.isnan(accuracy))
    order = known[np.lexsort((-accuracy[known], cost[known]))]
    unbeaten = np.zeros(len(cost), dtype=bool)
    if len(order):
        best = np.maximum.accumulate(accuracy[order])
        before = np.concatenate(([-np.inf], best[:-1]))
        unbeaten[order] = accuracy[order] > before
        # Equal in both: neither is better than the other.
        equal = (np.diff(cost[order]) == 0) & (np.diff(accuracy[order]) == 0)
        for place in np.flatnonzero(equal) + 1:
            unbeaten[order[place]] = unbeaten[order[place - 1]]
    return unbeaten
