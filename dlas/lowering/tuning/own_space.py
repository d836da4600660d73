"""Search of an algorithm's own space: the best guess, then neighbours of the best points, and random ones."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from dlas.lowering.tuning.records import Records
from dlas.stack import Decisions

BEST = 4
"""Number of best points whose neighbours are tried."""
NEAR = 0.5
"""Share of neighbours in a round; the rest is drawn from the remaining points."""


class OwnSpace:
    """The points of an algorithm's own space, each proposed once.

    Proposals depend only on the seed and the results so far, so that another process
    can continue a search.  A space with no more points than trials is tried in full.

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
        untried = [number for number in range(len(self.points)) if number not in tried]
        draw = np.random.default_rng([self.seed, len(records.rounds)])
        best_guess = [0] if 0 in untried else []
        near = self._near(records, untried, draw) if tried else self._around(0, untried, draw)
        count = min(self.per_round, len(untried))
        proposed = dict.fromkeys([*best_guess, *near[: round(NEAR * count)]])
        proposed |= dict.fromkeys(map(int, draw.permutation(untried)))
        return [{"decisions": self.points[number]} for number in list(proposed)[:count]]

    def _near(self, records: Records, untried: Sequence[int], draw: np.random.Generator) -> list[int]:
        """Return the untried neighbours of the best points so far, the best point's first."""
        best = sorted(records.valid, key=lambda trial: (trial.median_s, trial.number))[:BEST]
        neighbours: dict[int, None] = {}
        for trial in best:
            number = self._numbers[_frozen(records.candidates[trial.number]["decisions"])]
            neighbours |= dict.fromkeys(self._around(number, untried, draw))
        return list(neighbours)

    def _around(self, number: int, untried: Sequence[int], draw: np.random.Generator) -> list[int]:
        """Return the untried points that differ from a point in a single decision, in random order."""
        point = self.points[number]
        near = [other for other in untried if _differences(point, self.points[other]) == 1]
        return [int(other) for other in draw.permutation(near)]


def _frozen(point: Decisions) -> tuple[tuple[str, int | str], ...]:
    return tuple(sorted(point.items()))


def _differences(first: Decisions, second: Decisions) -> int:
    """Return how many decisions differ between two points."""
    return sum(first.get(name) != second.get(name) for name in {*first, *second})
