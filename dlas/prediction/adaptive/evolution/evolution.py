"""Evolutionary search: what maximises a score while its costs stay within bounds.

References
----------
Once-for-All, section 3.4: a population whose best are parents, half of their children changed, half crossed.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Generator, Hashable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Generic, NamedTuple, Protocol, TypeVar

import numpy as np

T = TypeVar("T", bound=Hashable)
TRIES = 50
"""How many times as many candidates as are missing are proposed before a generation is smaller."""


class SearchSpace(Protocol[T]):
    """What candidates are made from; one is hashable, and equal to another that is the same."""

    def draw(self, rng: np.random.Generator) -> T:
        """Return a candidate at random."""

    def mutated(self, one: T, rate: float, rng: np.random.Generator) -> T:
        """Return a candidate, each of whose choices is made anew with a probability."""

    def crossed(self, one: T, other: T, rng: np.random.Generator) -> T:
        """Return a candidate between two."""


class CostEstimate(NamedTuple):
    """What a candidate is expected to cost, the upper end of its interval, and the most that this may be."""

    value: float
    high: float
    bound: float


@dataclass(frozen=True)
class Individual(Generic[T]):
    """A candidate, and what it is worth."""

    candidate: T
    score: float
    """What is maximised."""
    costs: tuple[CostEstimate, ...]
    """One for each bound, at least one."""

    @property
    def excess(self) -> float:
        """The largest share of a bound that a cost takes: at most 1 where all are kept."""
        return max(each.high / each.bound for each in self.costs)


@dataclass(frozen=True)
class Settings:
    """How a search goes on."""

    population: int = 100
    generations: int = 500
    parents: float = 0.25
    """Share of the population that has children."""
    mutation: float = 0.1
    """How probable a change of each choice is."""
    seed: int = 0


Proposals = Generator[list[T], Sequence[Individual[T]] | None, None]
"""Yields candidates, and has what they are worth sent."""
Judge = Callable[[Sequence[T]], Sequence[Individual[T]]]
"""Returns what candidates are worth, in their order."""


@dataclass
class Memory(Generic[T]):
    """Remembers what candidates are worth, by the whole of each."""

    judge: Judge[T]
    """SearchRequest of those that were never seen."""
    known: dict[T, Individual[T]] = field(default_factory=dict)
    asked: int = 0

    def __call__(self, candidates: Sequence[T]) -> list[Individual[T]]:
        """Return what candidates are worth."""
        self.asked += len(candidates)
        new = [each for each in dict.fromkeys(candidates) if each not in self.known]
        if new:
            self.known.update(zip(new, self.judge(new), strict=True))
        return [self.known[each] for each in candidates]


@dataclass
class EvolutionarySearch(Generic[T]):
    """A search in progress: all that its continuation depends on."""

    space: SearchSpace[T]
    judge: Judge[T]
    settings: Settings
    population: list[Individual[T]] = field(default_factory=list)
    """The best first."""
    generation: int = 0
    """The number of those that are done."""
    rng: np.random.Generator = field(default_factory=np.random.default_rng)
    nearest: Individual[T] | None = None
    """Of what was drawn, that with the least excess."""
    settled: str = ""
    """The state of the random numbers after the last generation that is done."""

    def start(self) -> None:
        """Draw the first population; it stays empty where nothing keeps the bounds."""
        self._answer(self.starting())

    def advance(self) -> None:
        """Replace all but the best by children of these."""
        self._answer(self.breeding())

    def starting(self) -> Proposals[T]:
        """Do what :meth:`start` does, and leave it to the caller what candidates are worth."""
        self.rng = np.random.default_rng(self.settings.seed)
        drawn = yield from self._within(self.settings.population, lambda: self.space.draw(self.rng))
        self.population = _sorted(drawn)
        self.settled = json.dumps(self.rng.bit_generator.state)

    def breeding(self) -> Proposals[T]:
        """Do what :meth:`advance` does, and leave it to the caller what candidates are worth."""
        settings = self.settings
        count = max(1, min(len(self.population), round(settings.parents * settings.population)))
        parents = self.population[:count]
        missing = settings.population - count
        changed = yield from self._within(missing // 2, lambda: self._mutated(parents))
        crossed = yield from self._within(missing - missing // 2, lambda: self._crossed(parents))
        self.population = _sorted([*parents, *changed, *crossed])
        self.generation += 1
        self.settled = json.dumps(self.rng.bit_generator.state)

    def go_on_with(self, state: str) -> None:
        """Set the state of the random numbers to what :attr:`settled` was.

        Raises
        ------
        ValueError
            If it is damaged.
        """
        self.rng = np.random.default_rng()
        try:
            self.rng.bit_generator.state = json.loads(state)
        except (TypeError, KeyError, OverflowError, RecursionError) as error:
            raise ValueError(str(error)) from None
        self.settled = state

    def _mutated(self, parents: Sequence[Individual[T]]) -> T:
        one = parents[int(self.rng.integers(len(parents)))].candidate
        return self.space.mutated(one, self.settings.mutation, self.rng)

    def _crossed(self, parents: Sequence[Individual[T]]) -> T:
        one, other = (parents[int(self.rng.integers(len(parents)))].candidate for _ in range(2))
        return self.space.crossed(one, other, self.rng)

    def _answer(self, proposals: Proposals[T]) -> None:
        """Say what proposed candidates are worth."""
        answer: Sequence[Individual[T]] | None = None
        with suppress(StopIteration):
            while True:
                answer = self.judge(proposals.send(answer))

    def _within(
        self, count: int, propose: Callable[[], T]
    ) -> Generator[list[T], Sequence[Individual[T]] | None, list[Individual[T]]]:
        """Return candidates that keep the bounds, as many as asked for if enough are found."""
        found: list[Individual[T]] = []
        proposed = 0
        while len(found) < count and proposed < TRIES * count:
            batch = [propose() for _ in range(count - len(found))]
            proposed += len(batch)
            answer = yield batch
            assert answer is not None
            for each in answer:
                if each.excess <= 1 and math.isfinite(each.score):
                    found.append(each)
                if self.nearest is None or each.excess < self.nearest.excess:
                    self.nearest = each
        return found


def _sorted(population: Sequence[Individual[T]]) -> list[Individual[T]]:
    """Return the best first; of equal scores that with the lower cost."""
    return sorted(population, key=lambda each: (-each.score, each.excess))


def distinct(population: Sequence[Individual[T]]) -> list[Individual[T]]:
    """Return each candidate once, in the order of the first."""
    found: dict[T, Individual[T]] = {}
    for each in population:
        found.setdefault(each.candidate, each)
    return list(found.values())


def front(judged: Sequence[Individual[T]]) -> list[Individual[T]]:
    """Return those with a higher score than every other of at most their first cost, the cheapest first."""
    best: list[Individual[T]] = []
    for each in sorted(judged, key=lambda each: (each.costs[0].value, -each.score)):
        if not best or each.score > best[-1].score:
            best.append(each)
    return best
