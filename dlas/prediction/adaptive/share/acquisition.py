"""Which points to measure: those that cover every value, that tell most, and that may be the fastest."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from dlas.prediction.adaptive.share.gaussian_process import GaussianProcess
from dlas.prediction.adaptive.share.posterior import Posterior, some
from dlas.prediction.adaptive.share.space import Codes, Space
from dlas.stack.types import Floats

Mask = npt.NDArray[np.bool_]

TRIES = 20
"""Covers that are tried."""
LOOKED_AT = 10
"""Points that a cover chooses between, at random of those that are as good: so tries differ."""
TOGETHER = 1.05
"""What a suspect beside another takes away: more than a value to cover adds, so that one alone is better."""
GOALS = ("rest", "fastest")
"""What is looked for: the latencies of all other points, or the fastest of each group of rivals."""
LEAST_SHORTENING = 0.002
"""Shortening, of the mean logarithm of what looks fastest, below which hardly anything is to be found."""


@dataclass(frozen=True)
class ValuesToCover:
    """The values of each choice that no point has yet."""

    missing: Sequence[Mask]
    """For each choice, which of its values are to be covered."""
    suspects: Sequence[Mask]
    """Which of these came to nothing before: they are tried apart from each other, so that none is given up
    for the fault of another.
    """

    @classmethod
    def everything(cls, space: Space) -> ValuesToCover:
        """Return all values of all choices, none of which is suspect."""
        missing = [np.ones(len(factor.values), dtype=bool) for factor in space.choices]
        return cls(missing, [np.zeros_like(mask) for mask in missing])


def first_share(space: Space, seed: int, goal: str = "rest") -> list[int]:
    """Return points that have every value of every factor once: the fewest of several tries.

    Of tries with as few points, it is the one that leaves least unsure.  A study without factors has one
    point, which it returns.
    """
    everything = ValuesToCover.everything(space)
    free = np.ones(len(space), dtype=bool)
    before = Posterior.at_first(space, np.random.default_rng(seed))
    found: list[tuple[int, float, list[int]]] = []
    for number in range(TRIES):
        posterior = before.copy()
        rng = np.random.default_rng((seed, number))
        chosen = cover(space, everything, free, posterior, len(space), goal, rng)
        found.append((len(chosen), posterior.total_variance(), chosen))
    return min(found)[-1] or [0]


def cover(
    space: Space,
    values: ValuesToCover,
    free: Mask,
    posterior: Posterior,
    most: int,
    goal: str,
    rng: np.random.Generator,
) -> list[int]:
    """Return points that have every missing value, few of them.

    Each is one with as many missing values as any; of some of these, the one that says most about the others.

    Parameters
    ----------
    values : ValuesToCover
    free : array [n] of bool
        The points to choose from.
    posterior : Posterior
        Sees what is chosen.
    most : int
        Most points to return.
    goal : str
        One of :data:`GOALS`.
    rng : Generator
        Decides which of those with as many to look at.
    """
    wanted = [_padded(mask) for mask in values.missing]
    suspected = [_padded(mask) for mask in values.suspects]
    nothing = np.full(space.rivals.max() + 1, np.inf)
    chosen: list[int] = []
    left = rng.permutation(np.flatnonzero(free))
    while len(chosen) < most and len(left):
        together = np.maximum(_count(space, suspected, left) - 1, 0)
        gain = _count(space, wanted, left) - TOGETHER * together
        if gain.max() <= 0:
            break
        place = best(posterior, left[gain == gain.max()][:LOOKED_AT], space, nothing, goal)
        chosen.append(place)
        posterior.see(place)
        left = rng.permutation(left[left != place])
        for mask, factor in zip(wanted, space.choices, strict=True):
            mask[factor.codes[place]] = False
    return chosen


def best(posterior: Posterior, places: Codes, space: Space, least: Floats, goal: str) -> int:
    """Return the point among some whose measurement is worth most.

    For the rest, that is the one that takes most variance from all points.  For the fastest, it is the one
    that is expected to shorten most what looks fastest, as long as there is anything to be found.

    Parameters
    ----------
    least : array [groups]
        Logarithm of the shortest latency that was measured in each group of rivals.
    goal : str
        One of :data:`GOALS`.
    """
    if goal == "fastest":
        shortening = posterior.knowledge_gradient(places, space.rivals, least)
        if shortening.max() > LEAST_SHORTENING * len(least):
            return int(places[np.argmax(shortening)])
    return int(places[np.argmax(posterior.variance_reduction(places))])


def select_batch(
    space: Space,
    process: GaussianProcess,
    free: Codes,
    vain: Codes,
    count: int,
    goal: str,
    rng: np.random.Generator,
) -> list[int]:
    """Return the points whose measurements are worth most.

    Each counts as measured for the next one: so points of a batch are apart.

    Parameters
    ----------
    free : array of int
        The points to choose from.
    vain : array of int
        Points that came to nothing: those like them are left alone as if these had been measured.
    count : int
        Points to return, fewer where there are no more.
    goal : str
        One of :data:`GOALS`.
    """
    free = some(free, rng)
    posterior = Posterior.after(process, np.concatenate([free, vain]))
    for place in vain.tolist():
        posterior.see(place)
    posterior.means[len(free) :] = np.inf  # none of these is ever the fastest
    least = np.full(space.rivals.max() + 1, np.inf)
    np.minimum.at(least, space.rivals[process.rows], process.logarithms)
    chosen: list[int] = []
    while len(chosen) < min(count, len(free)):
        left = free[~np.isin(free, chosen)]
        chosen.append(best(posterior, left, space, least, goal))
        posterior.see(chosen[-1])
    return chosen


def fastest(latencies: Floats, rivals: Codes) -> Codes:
    """Return the place of the fastest of each group of rivals; points without a latency are never it.

    Parameters
    ----------
    latencies : array [n]
        NaN where there is none.
    rivals : array [n] of int
        Number of each point's group.
    """
    order = np.lexsort((np.where(np.isnan(latencies), np.inf, latencies), rivals))
    _, first = np.unique(rivals[order], return_index=True)
    return order[first[~np.isnan(latencies[order[first]])]]


def _padded(mask: Mask) -> Mask:
    """Return a mask with one more place, for absent values, whose code is -1: they are never wanted."""
    return np.append(mask, False)


def _count(space: Space, masks: Sequence[Mask], points: Codes) -> Floats:
    """Return how many values of each point are in the masks."""
    pairs = zip(masks, space.choices, strict=True)
    counts = [mask[factor.codes[points]].astype(np.float64) for mask, factor in pairs]
    return sum(counts, np.zeros(len(points)))
