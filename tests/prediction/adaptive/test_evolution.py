"""EvolutionarySearch finds what is best within a bound, remembers, and goes on where it was."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from dlas.prediction.adaptive.evolution.evolution import (
    CostEstimate,
    EvolutionarySearch,
    Individual,
    Memory,
    Settings,
    distinct,
    front,
)

Genes = tuple[int, ...]
LENGTH = 12
SETTINGS = Settings(population=30, generations=40, seed=3)


@dataclass(frozen=True)
class Digits:
    """Twelve digits."""

    def draw(self, rng: np.random.Generator) -> Genes:
        return tuple(map(int, rng.integers(10, size=LENGTH)))

    def mutated(self, one: Genes, rate: float, rng: np.random.Generator) -> Genes:
        return tuple(int(rng.integers(10)) if rng.random() < rate else gene for gene in one)

    def crossed(self, one: Genes, other: Genes, rng: np.random.Generator) -> Genes:
        return tuple(pair[int(rng.integers(2))] for pair in zip(one, other, strict=True))


def judge(candidates: Sequence[Genes]) -> list[Individual[Genes]]:
    """The even places cost, the odd ones score: the best is 0, 9, 0, 9, ..."""
    return judged(candidates, 20.0)


def judged(candidates: Sequence[Genes], bound: float) -> list[Individual[Genes]]:
    found = []
    for each in candidates:
        cost = sum(each[::2])
        costs = CostEstimate(cost + 1.0, cost + 2.0, bound), CostEstimate(each[0], each[0], 8.0)
        found.append(Individual(each, float(sum(each[1::2])), costs))
    return found


def run(generations: int = 40) -> EvolutionarySearch[Genes]:
    evolution = EvolutionarySearch(Digits(), Memory(judge), SETTINGS)
    evolution.start()
    for _ in range(generations):
        evolution.advance()
    return evolution


def test_it_nears_the_best_within_the_bounds() -> None:
    found = run().population
    assert all(each.costs[0].high <= 20.0 and each.candidate[0] <= 8 for each in found) and len(found) == 30
    assert found[0].score >= 45, "the most is 54, and one at random has 27"
    assert [each.score for each in found] == sorted((each.score for each in found), reverse=True)
    at_random = judge([Digits().draw(np.random.default_rng(seed)) for seed in range(1200)])
    assert found[0].score > max(each.score for each in at_random if each.excess <= 1)


def test_equal_seeds_find_the_same_and_a_state_goes_on() -> None:
    whole, half = run(10), run(5)
    again = EvolutionarySearch(Digits(), Memory(judge), SETTINGS, half.population, half.generation)
    again.go_on_with(half.settled)
    for _ in range(5):
        again.advance()
    assert again.population == whole.population and again.generation == 10


def test_memory_asks_once_of_each() -> None:
    asked: list[Genes] = []

    def noted(candidates: Sequence[Genes]) -> list[Individual[Genes]]:
        asked.extend(candidates)
        return judge(candidates)

    memory = Memory(noted)
    one, other = (1,) * LENGTH, (2,) * LENGTH
    assert [each.candidate for each in memory([one, other, one])] == [one, other, one]
    memory([other])
    assert asked == [one, other] and memory.asked == 4


def test_nothing_within_the_bound_leaves_the_nearest() -> None:
    evolution = EvolutionarySearch(Digits(), Memory(lambda candidates: judged(candidates, 1.0)), SETTINGS)
    evolution.start()
    assert evolution.population == [] and evolution.nearest is not None
    assert isinstance(evolution.judge, Memory)
    assert evolution.nearest.excess == min(each.excess for each in evolution.judge.known.values())


def test_the_front_holds_what_nothing_beats() -> None:
    costs = [(1.0, 1.0), (2.0, 3.0), (2.0, 2.0), (3.0, 3.0), (4.0, 5.0)]
    some = [
        Individual((place,), score, (CostEstimate(cost, cost, 9.0),))
        for place, (cost, score) in enumerate(costs)
    ]
    assert [each.candidate for each in front(some)] == [(0,), (1,), (4,)]
    assert [each.candidate for each in distinct([some[1], some[0], some[1]])] == [(1,), (0,)]
