"""Whether multiply-adds, parameters, accuracy and latency rank networks alike.

A network is a model under a compression; its latency is that of its fastest
algorithm and compiler.  Networks are compared within one place: the same
dataset, device, batch and seed.
"""

from __future__ import annotations

import itertools

import numpy as np
import pandas as pd

from dlas.analysis.matching import PLACE, groups, timed
from dlas.sweep.rows import intervals

QUANTITIES = {
    "macs": "multiply-adds",
    "parameters": "parameters",
    "accuracy": "accuracy",
    "latency_s": "latency",
}
FEWEST = 4
"""Least number of networks for a rank correlation."""
STRONG = 0.7
"""Least magnitude of a strong rank correlation."""


def networks(points: pd.DataFrame) -> pd.DataFrame:
    """Return the fastest point of each network in each place, without runtimes with kernels of their own."""
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
        both, ``correlation`` with ``low`` and ``high``, and ``missing``, why there is none.
    """
    lines_of_table = []
    compared = networks(points)
    for lines in groups(compared, PLACE):
        inside = compared.iloc[lines]
        place = {name: inside[name].iloc[0] for name in PLACE}
        for first, second in itertools.combinations(QUANTITIES, 2):
            lines_of_table.append(
                place | {"first": first, "second": second} | _correlated(inside[[first, second]])
            )
    columns = [*PLACE, "first", "second", "networks", "correlation", "low", "high", "missing"]
    return pd.DataFrame(lines_of_table, columns=columns)


def strength(low: float, high: float) -> str:
    """Return ``strong``, ``weak`` or ``open``, for the confidence interval of a rank correlation."""
    if low >= STRONG or high <= -STRONG:
        return "strong"
    return "weak" if low > -STRONG and high < STRONG else "open"


def _correlated(table: pd.DataFrame) -> dict[str, object]:
    both = table.dropna().to_numpy(dtype=float)
    names = " and ".join(QUANTITIES[str(name)] for name in table)
    missing_numbers = {"networks": len(both), "correlation": np.nan, "low": np.nan, "high": np.nan}
    if len(both) < FEWEST:
        return missing_numbers | {
            "missing": f"{FEWEST} networks with {names} are needed, there are {len(both)}"
        }
    value, low, high = intervals.rank_correlation(*both.T)
    if np.isnan(value):
        return missing_numbers | {"missing": "one of them is the same for all"}
    return {"networks": len(both), "correlation": value, "low": low, "high": high, "missing": ""}
