"""Shards: parts of a study's points that several machines, or jobs of a queue, measure apart.

A network is made for one shard alone, and points that are compared with each other stay together.  Which
points a shard has follows from the study alone: every machine draws the same line.
"""

from __future__ import annotations

import heapq
import re
from collections.abc import Iterable
from dataclasses import dataclass

from dlas.errors import InputError
from dlas.stack import TuningCompiler
from dlas.sweep.study.point import Choice, Point
from dlas.sweep.study.study import Study

WRITTEN = re.compile(r"(\d{1,9})/(\d{1,9})")
NETWORK_SECONDS, BUILD_SECONDS, TRIAL_SECONDS = 10.0, 20.0, 10.0
"""Prices of a network, a program, and a trial of each of its kernels: they decide only how evenly points
are dealt.
"""
USUAL_TRIALS = 32
"""Of a compiler that searches, where its option does not tell."""
Network = tuple[Choice, Choice]
"""A data set and a model: all its compressions start from it."""


@dataclass(frozen=True)
class Shard:
    """One of several parts of a study."""

    number: int
    """From 1."""
    count: int
    """How many parts there are."""

    @classmethod
    def parse(cls, text: str) -> Shard:
        """Return the shard that a text such as ``3/16`` names.

        Raises
        ------
        InputError
            If it is not of that form, or beyond the number of shards.
        """
        match = WRITTEN.fullmatch(text)
        number, count = map(int, match.groups()) if match else (0, 0)
        if not 1 <= number <= count:
            raise InputError(
                f"`shard={text!r}`: expected a number of a shard and how many there are, from 1/N to N/N, "
                "such as 3/16"
            )
        return cls(number, count)

    def points(self, study: Study) -> list[Point]:
        """Return its points of a study, in the study's order.

        Raises
        ------
        InputError
            If there are fewer networks than shards, so that this one has no points.
        """
        points = list(study.points())
        dealt = _dealt(prices(points, study.measure.seconds), self.count)
        chosen = [point for point in points if dealt[_network(point)] == self.number - 1]
        if not chosen:
            raise InputError(
                f"`shard='{self.number}/{self.count}'` has no points: each network is in one shard, and the "
                f"study has {len(dealt)} of them"
            )
        return chosen


def _network(point: Point) -> Network:
    return point.dataset, point.model


def prices(points: Iterable[Point], measure_seconds: float) -> dict[Network, float]:
    """Return the planned seconds of each network's points."""
    found: dict[Network, float] = {}
    made: set[tuple[Network, Choice, int]] = set()
    for point in points:
        network = _network(point)
        trials = dict(point.compiler.options).get("trials") or (
            USUAL_TRIALS if issubclass(point.compiler_class, TuningCompiler) else 0
        )
        seconds = measure_seconds + BUILD_SECONDS + trials * TRIAL_SECONDS
        own = (network, point.compression, point.seed)
        seconds += NETWORK_SECONDS * (own not in made)
        made.add(own)
        found[network] = found.get(network, 0.0) + seconds
    return found


def _dealt(prices: dict[Network, float], count: int) -> dict[Network, int]:
    """Return the shard of each network: the dearest ones first, each to the shard that has least so far."""
    shards = [(0.0, shard) for shard in range(count)]
    dealt = {}
    for network in sorted(prices, key=lambda network: -prices[network]):
        seconds, shard = heapq.heappop(shards)
        dealt[network] = shard
        heapq.heappush(shards, (seconds + prices[network], shard))
    return dealt
