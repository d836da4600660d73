"""Search of an algorithm's own space: the best guess first, then what is next to the best, and chance."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from dlas.stack import Decisions
from dlas.tuning.records import Records

BEST = 4
"""So many of the best are looked around."""
NEAR = 0.5
"""Share of a round that is next to the best, the rest is drawn from what is left."""


class OwnSpace:
    """The points of an algorithm's own space, each proposed once.

    What is proposed follows from the seed and the results so far alone, so that a
    search can be taken up by another process, and a space of no more points than
    trials is tried out whole.

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
        tried = {self._numbers[_frozen(each["decisions"])] for each in records.candidates}
        left = [number for number in range(len(self.points)) if number not in tried]
        draw = np.random.default_rng([self.seed, len(records.rounds)])
        first = [0] if 0 in left else []
        near = self._near(records, left, draw) if tried else self._around(0, left, draw)
        wanted = min(self.per_round, len(left))
        chosen = dict.fromkeys([*first, *near[: round(NEAR * wanted)]])
        chosen |= dict.fromkeys(map(int, draw.permutation(left)))
        return [{"decisions": self.points[number]} for number in list(chosen)[:wanted]]

    def _near(self, records: Records, left: Sequence[int], draw: np.random.Generator) -> list[int]:
        """Return the points left that are next to the best so far, those next to the very best first."""
        best = sorted(records.valid, key=lambda trial: (trial.median_s, trial.number))[:BEST]
        found: dict[int, None] = {}
        for trial in best:
            number = self._numbers[_frozen(records.candidates[trial.number]["decisions"])]
            found |= dict.fromkeys(self._around(number, left, draw))
        return list(found)

    def _around(self, number: int, left: Sequence[int], draw: np.random.Generator) -> list[int]:
        """Return the points left that differ from one in a single decision, in random order."""
        point = self.points[number]
        near = [other for other in left if _apart(point, self.points[other]) == 1]
        return [int(other) for other in draw.permutation(near)]


def _frozen(point: Mapping[str, Any]) -> tuple[tuple[str, Any], ...]:
    return tuple(sorted(point.items()))


def _apart(one: Mapping[str, Any], other: Mapping[str, Any]) -> int:
    """Return how many decisions differ."""
    return sum(one.get(name) != other.get(name) for name in {*one, *other})
