"""Which points to measure: those that cover every value, then those that tell most about the others."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from dlas.learning.exploring.covariance import Covariance
from dlas.learning.exploring.process import Process
from dlas.learning.exploring.space import Codes, Space

Array = npt.NDArray[np.float64]
Mask = npt.NDArray[np.bool_]

TRIES = 10
"""Covers that are tried."""
LOOKED_AT = 10
"""Points that a cover chooses between, at random of those that are as good: so tries differ."""
TOGETHER = 1.05
"""What a suspect beside another takes away: more than a value to cover adds, so that one alone is better."""
MOST_CANDIDATES = 1_500
"""Of more points, so many are looked at, at random."""
DRAWS = 200
"""Draws of the latencies that say which points may be the fastest."""
OF_RIVALS = 0.5
"""Share of the attention that goes to the points that may be the fastest among their rivals."""


class Unsure:
    """What is unsure of points, and how much of it each would take away.

    Parameters
    ----------
    rows : array of int
        The points.
    matrix : array [rows, rows]
        Covariance of what is not known of their latencies.
    noise : float
        Variance of a measurement.
    """

    def __init__(self, rows: Codes, matrix: Array, noise: float) -> None:
        self.rows, self._matrix, self._noise = rows, matrix, noise
        self._positions = {place: position for position, place in enumerate(rows.tolist())}

    @classmethod
    def at_first(cls, space: Space, rng: np.random.Generator) -> Unsure:
        """Return what is unsure before anything is measured."""
        covariance = Covariance.of(space, np.zeros(len(space)))
        usual, _ = covariance.usual()
        rows = some(np.arange(len(space)), rng)
        return cls(rows, covariance.between(usual, rows, rows), float(np.exp(2 * usual[0])))

    @classmethod
    def after(cls, process: Process, rows: Codes) -> Unsure:
        """Return what is unsure after what a process was fitted to."""
        return cls(rows, process.joint(rows), process.noise)

    def see(self, place: int) -> None:
        """Count a point as measured."""
        if place in self._positions:
            own = self._matrix[self._positions[place]]
            variance = own[self._positions[place]] + self._noise
            self._matrix = self._matrix - np.outer(own, own) / variance

    def gains(self, attention: Array | None = None) -> Array:
        """Return how much variance measuring each of the points takes away from all, by their attention."""
        weights = np.ones(len(self.rows)) if attention is None else attention
        return np.asarray(weights @ self._matrix**2 / (np.diag(self._matrix) + self._noise))

    def left(self) -> float:
        """Return the sum of the variances."""
        return float(np.trace(self._matrix))

    def best(self, places: Codes) -> int:
        """Return the point among some that takes most away; one that is not looked at takes nothing."""
        gains = dict(zip(self.rows.tolist(), self.gains().tolist(), strict=True))
        return max(map(int, places), key=lambda place: gains.get(place, 0.0))


def some(rows: Codes, rng: np.random.Generator) -> Codes:
    """Return the points, or of very many some at random."""
    return rows if len(rows) <= MOST_CANDIDATES else np.sort(rng.choice(rows, MOST_CANDIDATES, replace=False))


def first_share(space: Space, seed: int) -> list[int]:
    """Return points that have every value of every factor once: the fewest of several tries.

    Of tries with as few points, it is the one that leaves least unsure.  A study without factors has one
    point, which it returns.
    """
    everything = [np.ones(len(factor.values), dtype=bool) for factor in space.choices]
    free = np.ones(len(space), dtype=bool)
    found: list[tuple[int, float, list[int]]] = []
    for number in range(TRIES):
        rng = np.random.default_rng((seed, number))
        unsure = Unsure.at_first(space, rng)
        chosen = cover(space, everything, free, unsure, len(space), rng)
        found.append((len(chosen), unsure.left(), chosen))
    return min(found)[-1] or [0]


def cover(
    space: Space,
    missing: Sequence[Mask],
    free: Mask,
    unsure: Unsure,
    most: int,
    rng: np.random.Generator,
    suspects: Sequence[Mask] | None = None,
) -> list[int]:
    """Return points that have every missing value, few of them.

    Each is one with as many missing values as any; of some of these, the one that says most about the others.

    Parameters
    ----------
    space : Space
    missing : sequence of array of bool
        For each choice, which of its values are to be covered.
    free : array [n] of bool
        The points to choose from.
    unsure : Unsure
        Sees what is chosen.
    most : int
        Most points to return.
    rng : Generator
        Decides which of those with as many to look at.
    suspects : sequence of array of bool, optional
        Which of the missing values came to nothing before: they are tried apart from each other, so that
        none is given up for the fault of another.
    """
    wanted = [_padded(mask) for mask in missing]
    suspected = [_padded(mask) for mask in suspects or [np.zeros_like(mask) for mask in missing]]
    chosen: list[int] = []
    left = rng.permutation(np.flatnonzero(free))
    while len(chosen) < most and len(left):
        together = np.maximum(_count(space, suspected, left) - 1, 0)
        gain = _count(space, wanted, left) - TOGETHER * together
        if gain.max() <= 0:
            break
        place = unsure.best(left[gain == gain.max()][:LOOKED_AT])
        chosen.append(place)
        unsure.see(place)
        left = rng.permutation(left[left != place])
        for mask, suspect, factor in zip(wanted, suspected, space.choices, strict=True):
            mask[factor.codes[place]] = suspect[factor.codes[place]] = False
    return chosen


def telling(
    space: Space, process: Process, free: Codes, vain: Codes, count: int, rng: np.random.Generator
) -> list[int]:
    """Return the points whose measurements say most about the points that were not measured.

    What is unsure of a point is its variance.  Each choice is the point that takes away most of it, from
    itself and all that are like it, and counts as measured for the next one: so points of a batch are apart.
    Half of the attention is for points that may be the fastest among their rivals.

    Parameters
    ----------
    space : Space
    process : Process
    free : array of int
        The points to choose from.
    vain : array of int
        Points that came to nothing: those like them are left alone as if these had been measured.
    count : int
    rng : Generator
    """
    free = some(free, rng)
    attention = np.concatenate([_attention(space, process, free, rng), np.zeros(len(vain))])
    unsure = Unsure.after(process, np.concatenate([free, vain]))
    for place in vain.tolist():
        unsure.see(place)
    chosen: list[int] = []
    for _ in range(min(count, len(free))):
        gains = unsure.gains(attention)[: len(free)]
        gains[np.isin(free, chosen)] = -np.inf
        chosen.append(int(free[np.argmax(gains)]))
        unsure.see(chosen[-1])
    return chosen


def fastest(latencies: Array, rivals: Codes) -> Codes:
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


def _count(space: Space, masks: Sequence[Mask], points: Codes) -> Array:
    """Return how many values of each point are in the masks."""
    pairs = zip(masks, space.choices, strict=True)
    counts = [mask[factor.codes[points]].astype(np.float64) for mask, factor in pairs]
    return sum(counts, np.zeros(len(points)))


def _attention(space: Space, process: Process, free: Codes, rng: np.random.Generator) -> Array:
    """Return the weight of each point that could be measured; together they weigh 1."""
    equal = np.full(len(free), 1 / len(free))
    means, variances = process.predict(free)
    rivals = space.rivals[np.concatenate([process.rows, free])]
    wins, deviations = np.zeros(len(rivals)), np.sqrt(variances)
    for _ in range(DRAWS):
        drawn = np.concatenate([process.logarithms, rng.normal(means, deviations)])
        wins[fastest(drawn, rivals)] += 1
    # Of a point that is the fastest in every draw, and of one without rivals, there is nothing to learn.
    may_win = np.where(wins < DRAWS, wins, 0.0)[len(process.rows) :]
    if not may_win.any():
        return equal
    return np.asarray((1 - OF_RIVALS) * equal + OF_RIVALS * may_win / may_win.sum(), dtype=np.float64)
