"""Search of an algorithm's own space: the best guess, then neighbours of the best points, and random ones."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from dlas.stack import Decisions
from dlas.tuning.records import Records

BEST = 4
"""Neighbours of so many of the best points are tried."""
NEAR = 0.5
"""Share of a round that is neighbours of the best; the rest is drawn from what is left."""


class OwnSpace:
    """The points of an algorithm's own space, each proposed once.

    The seed and the results so far alone decide what is proposed, so that another
    process can continue a search.  A space of no more points than trials is tried as
    a whole.

    Parameters
    ----------
    points : sequence of mapping
        The best guess first.
    seed : int
    per_round : int
        Points proposed together.
    """

    def __init__(self, points: Sequence[Decisions], seed: int, per_round: int) -> None:
        self.points = [dict(point) for point in dict.fromkeys(map(_frozen, points))]
        self.seed, self.per_round = seed, per_round
        self._numbers = {_frozen(point): number for number, point in enumerate(self.points)}

    def propose(self, records: Records) -> list[dict[str, Any]]:
        """Return the candidates of the next round; none where every point has been proposed."""
        tried = {self._numbers[_frozen(candidate["decisions"])] for candidate in records.candidates}
        left = [number for number in range(len(self.points)) if number not in tried]
        draw = np.random.default_rng([self.seed, len(records.rounds)])
        best_guess = [0] if 0 in left else []
        near = self._near(records, left, draw) if tried else self._around(0, left, draw)
        wanted = min(self.per_round, len(left))
        proposed = dict.fromkeys([*best_guess, *near[: round(NEAR * wanted)]])
        proposed |= dict.fromkeys(map(int, draw.permutation(left)))
        return [{"decisions": self.points[number]} for number in list(proposed)[:wanted]]

    def _near(self, records: Records, left: Sequence[int], draw: np.random.Generator) -> list[int]:
        """Return the points left that are neighbours of the best so far, those of the very best first."""
        best = sorted(records.valid, key=lambda trial: (trial.median_s, trial.number))[:BEST]
        neighbours: dict[int, None] = {}
        for trial in best:
            number = self._numbers[_frozen(records.candidates[trial.number]["decisions"])]
            neighbours |= dict.fromkeys(self._around(number, left, draw))
        return list(neighbours)

    def _around(self, number: int, left: Sequence[int], draw: np.random.Generator) -> list[int]:
        """Return the points left that differ from one in a single decision, in random order."""
        point = self.points[number]
        near = [other for other in left if _differences(point, self.points[other]) == 1]
        return [int(other) for other in draw.permutation(near)]


def _frozen(point: Decisions) -> tuple[tuple[str, int | str], ...]:
    return tuple(sorted(point.items()))


def _differences(first: Decisions, second: Decisions) -> int:
    """Return how many decisions differ between two points."""
    return sum(first.get(name) != second.get(name) for name in {*first, *second})
