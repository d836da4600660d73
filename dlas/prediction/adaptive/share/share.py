"""From the first points of a share to the last, and what the points take that are not among them."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from dlas.errors import InputError, Unfinished
from dlas.prediction.adaptive.share.acquisition import ValuesToCover, cover, select_batch
from dlas.prediction.adaptive.share.covariance import Covariance
from dlas.prediction.adaptive.share.gaussian_process import GaussianProcess, fit
from dlas.prediction.adaptive.share.outcomes import PointOutcome, doubt, tallies, unknown
from dlas.prediction.adaptive.share.posterior import Posterior
from dlas.prediction.adaptive.share.space import Codes, Space
from dlas.prediction.adaptive.share.work import work_of
from dlas.stack.types import Floats
from dlas.sweep.rows.labels import points as counted
from dlas.sweep.rows.labels import shortened

MOST_TRIES = 3
"""A value is given up when so many points with it came to nothing."""
GROWTH = 0.25
"""A batch is so large a share of what was measured before it: with little known, few at a time."""
FEWEST_FOR_INTERVALS = 5
"""Points with a time below which nobody knows how far predictions can be trusted."""


@dataclass(frozen=True)
class RestPredictions:
    """What is said of the points that were not chosen."""

    rows: Codes
    """The points that are predicted; [m] of int."""
    seconds: Floats
    low: Floats
    high: Floats
    """Latencies with the bounds of their intervals, NaN where there is none; [m]."""
    doubts: list[str]
    """Why not to trust a prediction; empty where nothing speaks against it."""
    left_out: dict[int, str]
    """Why other points are not predicted."""
    error: float | None
    """Mean relative error of the points that were measured, each predicted from the others."""
    digest: str
    """SHA-256 of the points that were measured and of what was fitted."""


def budget_of(share: float, total: int) -> int:
    """Return the number of points in a share, at least one.

    Raises
    ------
    InputError
        If the share is not above 0 and at most 1.
    """
    if not 0 < share <= 1:
        raise InputError(f"`share={share:g}`: expected a share above 0 and at most 1, such as 0.1")
    return max(1, math.ceil(share * total - 1e-9))


def check_covers(space: Space, share: float, needed: int) -> None:
    """Refuse a share of fewer points than were found that have every value of every axis once.

    Parameters
    ----------
    needed : int
        Points of the first share.

    Raises
    ------
    InputError
        It says how many points that takes.
    """
    budget = budget_of(share, len(space))
    if needed > budget:
        enough = _rounded_up(needed / len(space))
        raise InputError(
            f"`share={share:g}` of {counted(len(space))} is {counted(budget)}, and it takes {needed:,} to "
            f"measure every value of every axis once: give `share={enough:g}` or more"
        )


def batches_of_share(
    space: Space,
    share: float,
    first: Sequence[int],
    known: Mapping[int, PointOutcome],
    *,
    goal: str = "rest",
    seed: int = 0,
    again: Sequence[int] = (),
) -> Iterator[list[int]]:
    """Yield the points of a share, batch by batch.

    Parameters
    ----------
    share : float
        Of the points, above 0 and at most 1.
    first : sequence of int
        Points that have every value once, of :func:`dlas.prediction.adaptive.share.acquisition.first_share`.
    known : mapping of int to PointOutcome
        What became of points that were measured; those of a batch have to be in it before the next one.
    goal : str
        One of :data:`dlas.prediction.adaptive.share.acquisition.GOALS`.
    again : sequence of int
        Points that were measured before and have to be again.  They are the first batch if all of them are
        within the share, and otherwise like those that never were.

    Raises
    ------
    InputError
        If the share is invalid.
    """
    budget = budget_of(share, len(space))
    if again and len(known) + len(again) <= budget:
        yield [*again]
    while len(known) < budget:
        batch = _batch(space, known, budget, goal, seed) if known else [*first[:budget]]
        if not batch:
            return
        yield batch


def predict_rest(space: Space, known: Mapping[int, PointOutcome]) -> RestPredictions:
    """Return what the points take that were not chosen.

    A point is left out where no point with one of its values has a time.

    Raises
    ------
    Unfinished
        If no point has a time.
    """
    process = process_of(space, known)
    free = np.setdiff1d(np.arange(len(space)), [*known])
    counts = tallies(space, known)
    left_out = {place: reason for place in free.tolist() if (reason := unknown(counts, place))}
    rows = np.array([place for place in free.tolist() if place not in left_out], dtype=np.intp)
    means, variances = process.predict(rows)
    half = process.half_widths(variances)
    if len(process.rows) < FEWEST_FOR_INTERVALS:
        half = np.full(len(rows), np.nan)
    error = float(np.abs(np.expm1(-process.errors)).mean()) if len(process.rows) > 1 else None
    content = [space.points[place].id for place in process.rows], process.parameters.tolist()
    return RestPredictions(
        rows=rows,
        seconds=np.exp(means),
        low=np.exp(means - half),
        high=np.exp(means + half),
        doubts=[doubt(counts, place) for place in rows.tolist()],
        left_out=left_out,
        error=error,
        digest=hashlib.sha256(json.dumps(content).encode()).hexdigest(),
    )


def _batch(space: Space, known: Mapping[int, PointOutcome], budget: int, goal: str, seed: int) -> list[int]:
    """Return the next points: for values that no point with a time has, or else those that are worth most.

    They depend on what is known and the seed alone.  So an exploration that was interrupted between two
    batches goes on as if it had not been; within a batch, it may choose others than it would have.
    """
    rng, counts = np.random.default_rng((seed, len(known))), tallies(space, known)
    free = np.ones(len(space), dtype=bool)
    free[[*known]] = False
    missing = [(tally.timed == 0) & (tally.vain < MOST_TRIES) for tally in counts]
    if any(mask.any() for mask in missing):
        posterior = Posterior.at_first(space, rng)
        for place in known:
            posterior.see(place)
        suspects = [mask & (tally.vain > 0) for mask, tally in zip(missing, counts, strict=True)]
        values = ValuesToCover(missing, suspects)
        if batch := cover(space, values, free, posterior, budget - len(known), goal, rng):
            return batch
    able = np.array([at for at in np.flatnonzero(free).tolist() if not unknown(counts, at)], dtype=np.intp)
    if not len(able):
        return []
    vain = np.array([place for place, each in known.items() if not each.seconds], dtype=np.intp)
    size = min(budget - len(known), max(1, int(GROWTH * len(known))))
    return select_batch(space, process_of(space, known), able, vain, size, goal, rng)


def process_of(space: Space, known: Mapping[int, PointOutcome]) -> GaussianProcess:
    """Return the process fitted to the points with a time.

    Raises
    ------
    Unfinished
        If there are none.
    """
    rows = np.array(sorted(place for place, each in known.items() if each.seconds), dtype=np.intp)
    if not len(rows):
        reason = next((each.reason for each in known.values()), "nothing was measured")
        raise Unfinished(
            f"none of {counted(len(known))} has a time, so that nothing can be predicted; the first: "
            f"{shortened(reason)}"
        )
    logarithms = np.log([known[place].seconds or np.nan for place in rows.tolist()])
    return fit(Covariance.of(space, work_of(space, known)), rows, logarithms)


def _rounded_up(share: float) -> float:
    """Return a share with two decimals, or three where it is small, that is not below it."""
    steps = 100 if share >= 0.1 else 1000
    return math.ceil(share * steps - 1e-9) / steps
