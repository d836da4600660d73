"""Whether multiply-adds, parameters, accuracy and latency rank networks alike.

A network is a model under a compression; its latency is that of its fastest
algorithm and compiler.  Networks are compared only in one place: the same
dataset, device, batch and seed.
"""

from __future__ import annotations

import itertools

import numpy as np
import pandas as pd

from dlas.analysis.matching import PLACE, groups, timed
from dlas.rows import intervals

QUANTITIES = {
    "macs": "multiply-adds",
    "parameters": "parameters",
    "accuracy": "accuracy",
    "latency_s": "latency",
}
FEWEST = 4
"""Networks below which a rank correlation says nothing."""
STRONG = 0.7
"""A rank correlation of this size or more is called strong."""


def networks(points: pd.DataFrame) -> pd.DataFrame:
    """Return the fastest point of each network in each place; runtimes with kernels of their own left out."""
    own = points[timed(points) & (points["tuning"] != "runtime")]
    ordered = own.sort_values("latency_s", kind="stable")
    return ordered.drop_duplicates([*PLACE, "model", "compression"]).sort_index()


def correlations(points: pd.DataFrame) -> pd.DataFrame:
    """Return the rank correlation of each two quantities in each place.

    Parameters
    ----------
    points : DataFrame
        What :func:`dlas.analysis.roles.with_roles` returned.

    Returns
    -------
    DataFrame
        One line a place and pair: ``first``, ``second``, ``networks`` that have
        both, ``correlation`` with ``low`` and ``high``, and ``missing``: why there is none.
    """
    lines_of_table = []
    compared = networks(points)
    for lines in groups(compared, PLACE):
        there = compared.iloc[lines]
        place = {name: there[name].iloc[0] for name in PLACE}
        for first, second in itertools.combinations(QUANTITIES, 2):
            lines_of_table.append(
                place | {"first": first, "second": second} | _correlated(there[[first, second]])
            )
    columns = [*PLACE, "first", "second", "networks", "correlation", "low", "high", "missing"]
    return pd.DataFrame(lines_of_table, columns=columns)


def strength(low: float, high: float) -> str:
    """Return ``strong``, ``weak`` or ``open``: what an interval says of a rank correlation."""
    if low >= STRONG or high <= -STRONG:
        return "strong"
    return "weak" if low > -STRONG and high < STRONG else "open"


def _correlated(there: pd.DataFrame) -> dict[str, object]:
    both = there.dropna().to_numpy(dtype=float)
    names = " and ".join(QUANTITIES[str(name)] for name in there)
    nothing = {"networks": len(both), "correlation": np.nan, "low": np.nan, "high": np.nan}
    if len(both) < FEWEST:
        return nothing | {"missing": f"{FEWEST} networks with {names} are needed, there are {len(both)}"}
    value, low, high = intervals.rank_correlation(*both.T)
    if np.isnan(value):
        return nothing | {"missing": "one of them is the same for all"}
    return {"networks": len(both), "correlation": value, "low": low, "high": high, "missing": ""}
