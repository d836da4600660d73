"""How many boards it takes to see a difference, from how much boards and rows differ."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy import stats

from dlas.analysis.variability.observed import Observed
from dlas.stack.types import Floats

DIFFERENCE = 0.02
"""The relative difference that is to be seen."""
LEVEL, POWER = 0.05, 0.95
"""Level of the two-sided t-test, and the probability with which it sees the difference."""
MOST_BOARDS = 1000
"""Most boards that are told; more are infinite."""


@dataclass(frozen=True)
class BoardsNeeded:
    """Numbers of boards that see :data:`DIFFERENCE` with :data:`POWER`, and what they follow from."""

    between: float
    """Standard deviation of boards without that of rows, as a fraction."""
    within: float
    """That of a row around its board and its point; NaN where there is a single point."""
    points: int
    """Points that each board measures, as here."""
    groups: float
    """Boards in each of two groups of different boards; infinite beyond :data:`MOST_BOARDS`."""
    paired: float
    """Boards that are measured twice, before a change and after it; likewise, and NaN without ``within``."""


def boards_needed(observed: Observed) -> BoardsNeeded:
    """Return how many boards it takes, by the power of the t-test.

    The logarithms of medians are points plus boards plus a residual, each board has every point: the
    usual analysis of variance.  A board's mean over points varies by ``between`` and by ``within``
    over the root of the number of points.  Where a board is measured twice, only the latter counts.
    """
    logs = np.log(
        observed.lines.pivot_table("value", "item", "board", aggfunc="median").to_numpy(dtype=float)
    )
    points, boards = logs.shape
    means = logs.mean(axis=0)
    of_means = float(means.var(ddof=1))
    residual = logs - means - logs.mean(axis=1, keepdims=True) + logs.mean()
    freedom = (points - 1) * (boards - 1)
    within = float((residual**2).sum()) / freedom if freedom else np.nan
    between = max(0.0, of_means - within / points) if freedom else of_means
    return BoardsNeeded(
        between=float(np.sqrt(between)),
        within=float(np.sqrt(within)),
        points=points,
        groups=_fewest(2 * of_means, groups=2),
        paired=_fewest(2 * within / points, groups=1),
    )


def power_of(boards: Floats, variance: float, groups: int, difference: float = DIFFERENCE) -> Floats:
    """Return the probability that a two-sided t-test of level :data:`LEVEL` sees a difference.

    Parameters
    ----------
    boards : ndarray
        Numbers of boards, in each group.
    variance : float
        Of a difference between a board of one group and one of the other, or of one board from itself.
    groups : int
        2, or 1 where boards are compared with themselves.
    difference : float
        Relative, as a fraction.
    """
    freedom = groups * (boards - 1)
    shift = np.log1p(difference) / np.sqrt(variance / boards)
    critical = stats.t.ppf(1 - LEVEL / 2, freedom)
    seen: Floats = stats.nct.sf(critical, freedom, shift) + stats.nct.cdf(-critical, freedom, shift)
    return seen


def _fewest(variance: float, groups: int) -> float:
    """Return the fewest boards that see the difference, infinite where none of these numbers does."""
    if not np.isfinite(variance):
        return np.nan
    boards = np.arange(2.0, MOST_BOARDS + 1)
    # Where boards do not differ at all, two are enough.
    enough = power_of(boards, max(variance, 1e-12), groups) >= POWER
    return float(boards[enough.argmax()]) if enough.any() else np.inf
