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

from dlas.stack.types import Floats

LEVEL = 0.9
"""Share of new rows that an interval is to cover."""


def fewest_groups(level: float = LEVEL) -> int:
    """Return the number of held-out groups below which there is no interval of a level: 9 for 0.9."""
    return math.ceil(1 / (1 - level) - 1 - 1e-9)


def half_width(
    predicted: Floats,
    measured: Floats,
    groups: Sequence[str],
    level: float = LEVEL,
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

    Returns
    -------
    float or None
        ``d`` of the interval ``predicted * exp(-d)`` to ``predicted * exp(d)``; None where the groups are
        too few for the level.
    """
    scores = np.abs(np.log(measured / predicted))
    names, places, counts = np.unique(np.asarray(groups), return_inverse=True, return_counts=True)
    weights = 1 / ((len(names) + 1) * counts[places])
    order = np.argsort(scores)
    # What is missing to 1 is the weight of the new group, whose score may be any.
    reached = np.cumsum(weights[order])
    enough = np.flatnonzero(reached >= level - 1e-12)
    return float(scores[order][enough[0]]) if len(enough) else None
