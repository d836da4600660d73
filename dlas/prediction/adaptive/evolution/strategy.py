"""Evolution as a strategy: generations, of which what has to be measured is asked for, then the winners."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from dlas.analysis.matching import timed
from dlas.errors import InputError
from dlas.prediction.adaptive.evolution.estimators import Costs, Measurement, Scores, costs_of, scores_of
from dlas.prediction.adaptive.evolution.evolution import (
    CostEstimate,
    EvolutionarySearch,
    Individual,
    Judge,
    Memory,
    Proposals,
    Settings,
    distinct,
    front,
)
from dlas.prediction.adaptive.evolution.identities import check_identities, identities
from dlas.prediction.adaptive.evolution.record import (
    FILE,
    CandidateRecord,
    CostRecord,
    SearchRecord,
    SearchRequest,
    holds_search,
    keeps,
    read_search,
)
from dlas.prediction.adaptive.evolution.space import Candidate, StudySpace
from dlas.prediction.adaptive.loop import Batch, Loop, LoopBudget, SteppedStrategy
from dlas.stack.types import Say
from dlas.sweep.engine.session import Session
from dlas.sweep.rows.files import check_appendable, holds_rows
from dlas.sweep.rows.frame import frame_of
from dlas.sweep.rows.labels import label
from dlas.sweep.study.kept import check_keepable
from dlas.sweep.study.point import Choice

MEASURED = "measured"
"""Folder, in that of the search, of what its estimator measured."""


class EvolutionStrategy(SteppedStrategy):
    """Breeds candidates until all generations are done, and measures the winners again.

    Parameters
    ----------
    space : StudySpace
    asked : SearchRequest
    costs : mapping of str to Costs
        By quantity.
    scores : Scores
    winners : int
        How many of the best are measured again.
    say : callable
        Takes the line for the last generation.
    identities : mapping of str to str
        What :func:`dlas.prediction.adaptive.evolution.identities.identities` returned, for the record.
    """

    places = ()
    file = FILE

    def __init__(
        self,
        space: StudySpace,
        asked: SearchRequest,
        costs: Mapping[str, Costs],
        scores: Scores,
        winners: int,
        say: Say = lambda line: None,
        identities: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__()
        self.identities = dict(identities or {})
        self.space, self.asked, self.winners, self.say = space, asked, winners, say
        self.memory: Memory[Candidate] = Memory(judge_of(space, costs, asked.within, scores))
        self.fronts: list[Individual[Candidate]] = []
        settings = Settings(asked.population, asked.generations, asked.parents, asked.mutation, asked.seed)
        self.evolution = EvolutionarySearch(space, self.memory, settings)
        self._measurement = next((each for each in costs.values() if isinstance(each, Measurement)), None)
        self._estimates = (0, 0)
        self._recalled = 0
        self._spent_s: float | None = None
        self._chosen: list[Individual[Candidate]] = []

    def line(self) -> str:
        """Return how many generations are done, and the best so far."""
        if not self.evolution.population:
            return "drawing the first generation"
        best, quantity = self.evolution.population[0], next(iter(self.asked.within))
        told = f"best score {best.score:.4g} at {quantity}={best.costs[0].value:.4g}"
        return f"generation {self.evolution.generation} of {self.asked.generations}, {told}"

    def batches(self) -> Iterator[Batch]:
        """Yield what has to be measured, nothing after each generation, and the winners.

        Raises
        ------
        InputError
            If nothing that was drawn keeps the bound.
        """
        if not self.evolution.population:
            yield from self._answers(self.evolution.starting())
            self._check_started()
        while self.evolution.generation < self.asked.generations:
            yield from self._answers(self.evolution.breeding())
            yield Batch(self.space.small)
        self.say(self.line())
        self._chosen = distinct(self.evolution.population)[: self.winners]
        if self._chosen:
            points = [self.space.point(each.candidate) for each in self._chosen]
            yield Batch(self.space.study, points, owed=True, shown=True)

    def record(self, spent_s: float, finished: bool) -> SearchRecord | None:
        """Return the state of the search, None before its first generation.

        Its seconds are those until the winners were chosen.
        """
        if not self.evolution.population:
            return None
        if self._chosen and self._spent_s is None:
            self._spent_s = spent_s
        asked_for, estimated = self._estimates
        finite = [each for each in self.memory.known.values() if math.isfinite(each.score + each.excess)]
        self.fronts = front([*self.fronts, *finite])
        measured = self._measured() if finished else {}
        return SearchRecord(
            asked=self.asked,
            identities=self.identities,
            generation=self.evolution.generation,
            asked_for=asked_for + self.memory.asked,
            estimated=estimated + len(self.memory.known) - self._recalled,
            spent_s=spent_s if self._spent_s is None else self._spent_s,
            state=self.evolution.settled,
            population=[self._found(each) for each in self.evolution.population],
            front=[self._found(each) for each in self.fronts],
            winners=[self._found(each, measured) for each in self._chosen] if finished else [],
            finished=finished,
        )

    def tell(self, rows: Sequence[Any], place: str) -> None:
        """Take the rows of candidates, or of winners."""
        super().tell(rows, place)
        if self._measurement is not None and place == MEASURED:
            self._measurement.rows.update({row.id: row for row in rows})

    def _answers(self, proposals: Proposals[Candidate]) -> Iterator[Batch]:
        """Say what proposed candidates are worth; yield those that have to be measured for it."""
        answer: Sequence[Individual[Candidate]] | None = None
        while True:
            try:
                candidates = proposals.send(answer)
            except StopIteration:
                return
            if self._measurement is not None:
                new = dict.fromkeys(each for each in candidates if each not in self.memory.known)
                points = [point for each in new if self.space.allows(point := self.space.point(each))]
                if points:
                    yield Batch(self.space.small, points, MEASURED, owed=True)
            answer = self.memory(candidates)

    def go_on_with(self, before: SearchRecord) -> None:
        """Go on where an earlier call was.

        Raises
        ------
        InputError
            If the earlier search is damaged.
        """
        self.evolution.generation = before.generation
        try:
            self.evolution.go_on_with(before.state)
        except ValueError as error:
            raise InputError(f"the state of its random numbers is damaged: {error}") from None
        self.evolution.population = [self._individual(each) for each in before.population]
        self.fronts = [self._individual(each) for each in before.front]
        self.memory.known = {each.candidate: each for each in (*self.fronts, *self.evolution.population)}
        self._recalled = len(self.memory.known)
        self._estimates = before.asked_for, before.estimated

    def _check_started(self) -> None:
        """Refuse bounds that nothing that was drawn keeps."""
        if self.evolution.population:
            return
        drawn, nearest = len(self.memory.known), self.evolution.nearest
        assert nearest is not None
        bounds = " and ".join(f"{name}={most:g}" for name, most in self.asked.within.items())
        if not math.isfinite(nearest.excess):
            raise InputError(
                f"`within={bounds}`: no cost of {drawn:,} candidates that were drawn is known: the study "
                "skips them, or their networks could not be made or measured; `dlas run` tells why"
            )
        if nearest.excess <= 1:
            raise InputError(
                f"`maximise={self.asked.maximise!r}`: of {drawn:,} candidates that were drawn none that "
                "keeps the bounds has a score: their networks could not be made; `dlas run` tells why"
            )
        named = zip(self.asked.within, nearest.costs, strict=True)
        costs = ", ".join(f"{name}={cost.value:.4g} (at most {cost.high:.4g})" for name, cost in named)
        raise InputError(
            f"`within={bounds}`: none of {drawn:,} candidates that were drawn keeps it; the nearest, "
            f"{self._label(nearest.candidate)}, has {costs}"
        )

    def _measured(self) -> dict[tuple[str, str], float]:
        """Return each quantity that was measured of the winners, by its name and the point's id."""
        frame = frame_of(self.rows.get("", {}).values())
        results = frame[timed(frame)] if len(frame) else frame
        return {
            (name, row): float(value)
            for name in self.asked.within
            if name in results
            for row, value in zip(results["id"], results[name], strict=True)
            if pd.notna(value)
        }

    def _label(self, candidate: Candidate) -> str:
        """Return a candidate's values on the axes on which candidates differ."""
        axes, values = self.space.study.axes, dict(zip(self.space.axes, candidate, strict=True))
        told = (value for axis, value in values.items() if axes[axis].open or axes[axis].size > 1)
        return " / ".join(label(each.content()) if isinstance(each, Choice) else str(each) for each in told)

    def _found(
        self, one: Individual[Candidate], measured: Mapping[tuple[str, str], float] | None = None
    ) -> CandidateRecord:
        """Return a candidate as it is written."""
        name, known = self.space.point(one.candidate).id, measured or {}
        return CandidateRecord(
            label=self._label(one.candidate),
            content=self.space.content(one.candidate),
            score=one.score,
            costs={
                quantity: CostRecord(value=cost.value, high=cost.high, measured=known.get((quantity, name)))
                for quantity, cost in zip(self.asked.within, one.costs, strict=True)
            },
            id=name,
        )

    def _individual(self, found: CandidateRecord) -> Individual[Candidate]:
        """Return a candidate that was written, perhaps elsewhere.

        Raises
        ------
        InputError
            If it is none of the study.
        """
        estimates = ((found.costs[name], most) for name, most in self.asked.within.items())
        costs = tuple(CostEstimate(each.value, each.high, most) for each, most in estimates)
        axes = self.space.study.axes
        try:
            candidate = self.space.of_content(found.content)
            hash(candidate)
            known = [axes[axis].holds(value) for axis, value in zip(self.space.axes, candidate, strict=True)]
        except (KeyError, TypeError, AttributeError) as error:
            raise InputError(f"{found.label!r}: {type(error).__name__}: {error}") from None
        if not all(known):
            raise InputError(f"{found.label!r} is no candidate of the study")
        return Individual(candidate, found.score, costs)


def search(
    space: StudySpace, folder: Path, asked: SearchRequest, winners: int, session: Session, say: Say
) -> SearchRecord:
    """Search until all generations are done, from where an earlier call was, and measure the winners.

    Parameters
    ----------
    winners : int
        How many of the best are measured again; of a search that is finished more may be later.
    say : callable
        Takes lines of progress.

    Raises
    ------
    InputError
        If an estimator does not exist, nothing keeps the bounds, or the folder holds something else.
    """
    if winners < 0:
        raise InputError(f"`winners={winners}`: expected a number from 0 on")
    before = earlier_search(folder, space, asked)
    if before is not None and is_complete(before, winners):
        say(f"{folder} is finished: {before.generation} generations")
        return before
    costs = costs_of(asked.estimators, space, asked.within, session)
    scores = scores_of(asked.maximise, space, session)
    known = identities([*asked.estimators, asked.maximise])
    if before is not None and not before.finished:
        check_identities(before.identities, known, folder)
    elif before is not None:
        known = before.identities
    strategy = EvolutionStrategy(space, asked, costs, scores, winners, say, known)
    try:
        if before is not None:
            strategy.go_on_with(before)
    except InputError as error:
        raise InputError(f"{str(folder)!r} holds a damaged search: {error}") from None
    session.check(space.small, folder, list(space.small.points()))
    budget = LoopBudget(before_s=before.spent_s if before is not None else 0.0)
    Loop(strategy, session, folder, budget, say).run()
    return read_search(folder)


def earlier_search(folder: Path, space: StudySpace, asked: SearchRequest) -> SearchRecord | None:
    """Return the search in a folder that this one goes on with; None where there is none.

    Raises
    ------
    InputError
        If the folder holds something else.
    """
    check_keepable(folder, space.study.toml())
    space.study.with_sample(1).check_parts()
    if not holds_search(folder):
        check_appendable(folder)
        if holds_rows(folder):
            raise InputError(f"{str(folder)!r} holds rows and no search; give another `out=`")
        return None
    found = read_search(folder)
    asked.check_goes_on(found.asked, folder, "a search")
    return found


def is_complete(record: SearchRecord, winners: int) -> bool:
    """Return whether a search is finished, and has as many winners as are asked for, or all there are."""
    found = {each.id for each in record.population}
    return record.finished and len(record.winners) >= min(winners, len(found))


def winners_frame(record: SearchRecord) -> pd.DataFrame:
    """Return the winners as a table: of each bounded quantity what was estimated, at most, and measured."""
    lines = []
    for each in record.winners:
        line: dict[str, Any] = {"id": each.id, "label": each.label, "score": each.score}
        for name, cost in each.costs.items():
            line |= {name: cost.value, f"{name}_high": cost.high, f"{name}_measured": cost.measured}
        lines.append({**line, "kept": keeps(each, record.asked.within)})
    frame = pd.DataFrame(lines)
    return frame.astype({"kept": "boolean"}) if lines else frame


def judge_of(
    space: StudySpace, costs: Mapping[str, Costs], within: Mapping[str, float], scores: Scores
) -> Judge[Candidate]:
    """Return what tells the worth of candidates; those that the study skips have none.

    Parameters
    ----------
    costs : mapping of str to Costs
        By quantity.
    within : mapping of str to float
        The most of each quantity.
    """
    never = tuple(CostEstimate(math.inf, math.inf, within[quantity]) for quantity in costs)

    def judge(candidates: Sequence[Candidate]) -> list[Individual[Candidate]]:
        points = {each: space.point(each) for each in candidates}
        allowed = {each: point for each, point in points.items() if space.allows(point)}
        found = {each: Individual(each, -math.inf, never) for each in points}
        if allowed:
            own = list(allowed.values())
            told = [(*estimate(own), within[quantity]) for quantity, estimate in costs.items()]
            for at, (each, score) in enumerate(zip(allowed, scores(own), strict=True)):
                estimates = (
                    CostEstimate(float(value[at]), float(high[at]), most) for value, high, most in told
                )
                found[each] = Individual(each, float(score), tuple(estimates))
        return [found[each] for each in candidates]

    return judge
