"""Prediction intervals that hold for groups never seen: hierarchical conformal prediction.

Rows of one group (a network, a pruning level) err together, so that the number of groups counts, not that
of rows.  The scores are errors of predictions of groups that the predictor was not fitted on.

References
----------
Lee, Barber, Willett: Distribution-free inference with hierarchical data, arXiv 2306.06342.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from scipy import stats

from dlas.stack.types import Floats

LEVEL = 0.9
"""Share of new rows that an interval is to cover."""


NETWORKS_BEFORE = 5
"""Networks that are measured after a fit count as much as the width before them where they are so many."""


def fewest_groups(level: float = LEVEL) -> int:
    """Return the number of held-out groups below which there is no interval of a level: 9 for 0.9."""
    return math.ceil(1 / (1 - level) - 1 - 1e-9)


def half_width(
    predicted: Floats,
    measured: Floats,
    groups: Sequence[str],
    level: float = LEVEL,
    scales: Floats | None = None,
) -> float | None:
    """Return half of the width of an interval that covers a share of the rows of new groups.

    Parameters
    ----------
    predicted, measured : array [n]
        Of rows whose groups were held out when they were predicted.
    groups : sequence of str, length n
        Groups weigh alike, whatever their number of rows.
    level : float
        The share.
    scales : array [n], optional
        How far each row is expected to be off, relative to the others; 1 for all by default.

    Returns
    -------
    float or None
        ``d`` of the interval ``predicted * exp(-d)`` to ``predicted * exp(d)`` of a row whose scale is 1;
        None where the groups are too few for the level.
    """
    scores = np.abs(np.log(measured / predicted)) / (1.0 if scales is None else scales)
    names, places, counts = np.unique(np.asarray(groups), return_inverse=True, return_counts=True)
    weights = 1 / ((len(names) + 1) * counts[places])
    order = np.argsort(scores)
    # What is missing to 1 is the weight of the new group, whose score may be any.
    reached = np.cumsum(weights[order])
    enough = np.flatnonzero(reached >= level - 1e-12)
    return float(scores[order][enough[0]]) if len(enough) else None


def with_networks(half_width: float, errors: Floats) -> float:
    """Return half of the width where networks were measured that nothing was fitted to.

    Parameters
    ----------
    half_width : float
        Of a network whose scale is 1, before.
    errors : array [networks]
        Logarithm of each network's error, over its scale.

    Returns
    -------
    float
        Of a t distribution, whose variance is the mean of that before and of the networks.
    """
    quantile = (1 + LEVEL) / 2
    before = NETWORKS_BEFORE * (half_width / stats.norm.ppf(quantile)) ** 2
    count = NETWORKS_BEFORE + len(errors)
    return float(stats.t.ppf(quantile, count) * math.sqrt((before + np.sum(errors**2)) / count))
