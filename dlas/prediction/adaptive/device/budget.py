"""How minutes are spent on a predictor for a device: rounds of points, the end, and when it comes.

All of it is arithmetic on the seconds that points took; before any was measured, on usual ones.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from dlas.errors import InputError, Unfinished
from dlas.prediction.adaptive.loop import LoopBudget
from dlas.stack import Backend, TuningCompiler
from dlas.sweep.rows.labels import duration, number_of, points

FIRST = 28
"""Points that are measured as they are drawn: with a quarter held out, 20 are left to fit a predictor to."""
PROBED = 5
"""Points after which it is known how long one takes here."""
FEWEST_A_ROUND = 8
GROWTH = 0.25
"""Points of a round, as a share of those that are known."""
CANDIDATES = 3
"""Candidates for each point of a round."""
UNSEEN_BATCHES = (1, 8)
"""Batch sizes of the networks that are measured at the end."""
UNSEEN_WEIGHT = 3.0
"""Such a point takes as long as so many others: real networks have more layers than drawn ones."""
PATIENCE = 4
"""Rounds without a smaller error after which no more are measured."""
IMPROVED = 0.97
"""An error is smaller if it is at most this share of the smallest before."""
FLOORS = 1.5
"""Noise floors to which an error can sensibly be brought."""
FEWEST_PAIRS = 5
"""Points measured twice before the noise floor counts."""
MORE_SHARE = 0.25
"""Share of the points that are measured on more threads, too, :data:`FIRST` at least: their predictor learns
from all points what one takes on fewer.
"""
MARGIN = 1.2
"""Minutes that are advised, as a multiple of those that the points so far ask for: others may be slower."""
USUAL_FIT_S = 20.0
USUAL_S = {"runtime": 4.0, "compiler": 12.0, "search": 300.0}
"""Seconds that a drawn network takes on two cores: with a runtime, compiled, compiled after a search."""


def usual_s(compiler: type[Backend]) -> float:
    """Return the seconds that a drawn network usually takes from its layers to its row."""
    if issubclass(compiler, TuningCompiler):
        return USUAL_S["search"]
    return USUAL_S["runtime" if compiler.own_kernels else "compiler"]


def on_more_threads(known: int) -> int:
    """Return how many of so many points are measured on more threads, too."""
    return min(known, max(FIRST, round(MORE_SHARE * known)))


def end_s(point_s: float, networks: int, fit_s: float, more: int = 0) -> float:
    """Return the seconds for the end: the last fit, the networks never seen, and a point again after each.

    Parameters
    ----------
    point_s : float
        Seconds a drawn point takes.
    networks : int
        Networks never seen, each at all of :data:`UNSEEN_BATCHES`.
    fit_s : float
        Seconds of the last fit.
    more : int
        Points on more threads.
    """
    return fit_s + point_s * (more + networks * (UNSEEN_WEIGHT * len(UNSEEN_BATCHES) + 1))


def check_number(minutes: float) -> None:
    """Refuse what is no number of minutes, such as infinity.

    Raises
    ------
    InputError
    """
    if not 0 < minutes < math.inf:
        raise InputError(f"`minutes={minutes:g}`: expected a number above 0, such as 30")


def check_minutes(minutes: float, compiler: str, point_s: float, networks: int, more: int = 0) -> None:
    """Refuse too few minutes for the first points and the end, before anything is measured.

    Parameters
    ----------
    compiler : str
        Its name.
    point_s, networks, more
        As for :func:`end_s`.

    Raises
    ------
    InputError
        It says how many it takes.
    """
    needed_s = point_s * FIRST + end_s(point_s, networks, USUAL_FIT_S, more)
    if 60 * minutes < needed_s:
        raise InputError(
            f"`minutes={minutes:g}`: {points(FIRST)}, the fewest that a predictor is fitted to, and "
            f"{number_of(networks, 'network')} that it is then tried on take about "
            f"{advised(needed_s)} minutes with {compiler}"
        )


def check_pace(budget: LoopBudget, measured: int, point_s: float, networks: int, more: int = 0) -> None:
    """Stop where the minutes turn out too few for the first points and the end.

    Parameters
    ----------
    measured : int
        Points so far.
    point_s : float
        Seconds that each of them took.
    networks : int
        Networks never seen.
    more : int
        Points on more threads.

    Raises
    ------
    Unfinished
        It says how many minutes it takes.
    """
    left = point_s * max(0, FIRST - measured) + end_s(point_s, networks, USUAL_FIT_S, more)
    if left > budget.left_s:
        raise Unfinished(
            f"`minutes={budget.minutes:g}` is too few: a point takes {duration(point_s)} here, and "
            f"{points(measured)} of {FIRST} are measured; the same command with "
            f"`minutes={advised(budget.spent_s + left)}` goes on"
        )


def points_of_round(known: int, affordable: int) -> int:
    """Return how many points to measure next.

    Parameters
    ----------
    known : int
        Points so far: a round adds a share of them, so that predictors are not fitted all the time.
    affordable : int
        Points for which there is time.

    Returns
    -------
    int
        All that there is time for, where the rest would make no round; 0 where that is too few itself.
    """
    usual = max(FEWEST_A_ROUND, round(GROWTH * known))
    if affordable < FEWEST_A_ROUND // 2:
        return 0
    return affordable if affordable < usual + FEWEST_A_ROUND // 2 else usual


def stop_reason(errors: Sequence[float], floor: float | None, pairs: int) -> str | None:
    """Return why no more points are worth measuring; None where they are.

    Parameters
    ----------
    errors : sequence of float
        On the same networks, held out, after each round so far.
    floor : float or None
        The noise floor.
    pairs : int
        Points that were measured twice, from which it comes.
    """
    if floor is not None and pairs >= FEWEST_PAIRS and errors[-1] <= FLOORS * floor:
        return f"the error on networks held out is at most {FLOORS:g} noise floors"
    before, latest = errors[:-PATIENCE], errors[-PATIENCE:]
    if before and min(latest) > IMPROVED * min(before):
        return f"the error on networks held out has not become smaller for {PATIENCE} rounds"
    return None


def advised(seconds: float) -> int:
    """Return whole minutes that are enough, also where points turn out a little slower."""
    return math.ceil(MARGIN * seconds / 60)
