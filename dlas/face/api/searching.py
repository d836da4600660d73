"""Search the drawn part of a study for what scores highest within a bound, and measure the winners again."""

from __future__ import annotations

import math
import os
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pandas as pd

from dlas.analysis.matching import timed
from dlas.errors import InputError
from dlas.face.console import terminal
from dlas.face.console.progress import ConsoleDisplay, ProgressKind
from dlas.face.console.views import View
from dlas.prediction.learning.candidates import Candidate, StudySpace
from dlas.prediction.learning.evolution import (
    Cost,
    Evolution,
    Judge,
    Judged,
    Memory,
    Settings,
    distinct,
    front,
)
from dlas.sweep.engine.checks import check_parts
from dlas.sweep.engine.session import Session, Steps
from dlas.sweep.rows.files import check_appendable, holds_rows
from dlas.sweep.rows.frame import read
from dlas.sweep.rows.labels import label
from dlas.sweep.rows.searches import (
    Asked,
    CostRecord,
    FoundRecord,
    SearchRecord,
    holds_search,
    keeps,
    read_search,
    write_search,
)
from dlas.sweep.study.kept import check_keepable
from dlas.sweep.study.point import Choice, Point
from dlas.sweep.study.reading import as_study

if TYPE_CHECKING:
    from dlas.face.api.search_sources import Costs, Scores
    from dlas.sweep.study.study import Study

SAVED_S = 5.0
"""Seconds between two states on the disk."""
Say = Callable[[str], None]


def search(
    study: Study | Mapping[str, Any] | str | os.PathLike[str],
    out: str | os.PathLike[str],
    *,
    estimator: str | os.PathLike[str] | Sequence[str | os.PathLike[str]],
    maximise: str | os.PathLike[str],
    within: Mapping[str, float],
    population: int = 100,
    generations: int = 500,
    parents: float = 0.25,
    mutation: float = 0.1,
    winners: int = 5,
    cache: str | os.PathLike[str] | None = None,
    steps: Steps = "spawned",
    progress: ProgressKind = "auto",
    say: Say = lambda line: None,
) -> View:
    """Search the drawn part of a study by evolution, measure the winners again, and return them.

    A candidate keeps a bound if the upper end of its interval does.  What was estimated is remembered by
    the whole candidate.  Interrupted, the same call goes on.

    Parameters
    ----------
    study : Study, mapping or path
        It draws; every axis that it does not draw has one value.
    out : path
        Folder for ``search.json``, and for the rows of the winners.
    estimator : path or str, or several
        What tells costs: a predictor's folder, tables of ``dlas blocks`` or Once-for-All, or ``"measure"``;
        one for each bound.
    maximise : path or str
        What tells scores: a predictor's folder, a file of weights from a subnetwork's 128 values to its
        accuracy, or ``"accuracy"``, by which each network is made and evaluated.
    within : mapping of str to float
        The most that each cost may be: ``{"latency_s": 0.03}``.
    population, generations : int
    parents : float
        Share of the population that has children.
    mutation : float
        How probable a change of each choice is.
    winners : int
        How many of the best are measured again; 0 for none.  Of a search that is finished more may be
        measured later.
    cache, steps, progress
        As for :func:`dlas.run`.
    say : callable
        Takes lines of progress.

    Returns
    -------
    View
        A line for each winner: score, estimate, upper end, what was measured, and whether it keeps the bound.

    Raises
    ------
    InputError
        If an argument is invalid, nothing that was drawn keeps the bound, of which the nearest is told, or
        the folder holds another search; nothing has been written then.
    """
    from dlas.face.api.search_sources import costs_of, scores_of
    from dlas.face.console.searching import table

    if winners < 0:
        raise InputError(f"--winners {winners}: expected a number from 0 on")
    space, folder = StudySpace.of(as_study(study)), Path(out)
    several = [estimator] if isinstance(estimator, str | os.PathLike) else estimator
    asked = _asked(
        space,
        estimators=[os.fspath(each) for each in several],
        maximise=os.fspath(maximise),
        within=dict(within),
        population=population,
        generations=generations,
        parents=parents,
        mutation=mutation,
    )
    before = _before(folder, space, asked)
    if before is not None and _is_complete(before, winners):
        say(f"{folder} is finished: {before.generation} generations")
        return View(_frame(before), table(before))
    with Session.open(steps, cache=cache, display=ConsoleDisplay.of("silent")) as session:
        costs = costs_of(asked.estimators, space, asked.within, folder, session)
        scores = scores_of(asked.maximise, space, session)
        run = _Run(space, folder, asked, Memory(judge_of(space, costs, asked.within, scores)))
        run.go(before, progress, say)
        chosen = distinct(run.evolution.population)[:winners]
        shown = session.shown_by(ConsoleDisplay.of(progress))
        measured = _measured(space, within, chosen, folder, shown) if chosen else {}
    record = run.record([_found(space, asked, each, measured) for each in chosen], finished=True)
    write_search(folder, record)
    return View(_frame(record), table(record))


def _asked(space: StudySpace, **options: Any) -> Asked:
    """Return what was asked for.

    Raises
    ------
    InputError
        If an option is out of range.
    """
    import pydantic

    try:
        return Asked(study=space.study.toml(), seed=space.study.seed, **options)
    except pydantic.ValidationError as error:
        problem = error.errors()[0]
        raise InputError(f"--{problem['loc'][0]} {problem['input']!r}: {problem['msg']}") from None


def _before(folder: Path, space: StudySpace, asked: Asked) -> SearchRecord | None:
    """Return the search in a folder that this one goes on with; None where there is none.

    Raises
    ------
    InputError
        If the folder holds something else.
    """
    check_keepable(folder, space.study)
    check_parts(space.study.with_sample(1))
    if not holds_search(folder):
        check_appendable(folder)
        if holds_rows(folder):
            raise InputError(f"{str(folder)!r} holds rows and no search; give another --out")
        return None
    found = read_search(folder)
    differing = [name for name, value in asked if getattr(found.asked, name) != value]
    if differing:
        name = differing[0]
        shown = "" if name == "study" else f" {getattr(found.asked, name)!r}, not {getattr(asked, name)!r}"
        raise InputError(
            f"{str(folder)!r} holds a search with another {name}{':' if shown else ''}{shown}; "
            "give another --out"
        )
    return found


def _is_complete(record: SearchRecord, winners: int) -> bool:
    """Return whether a search is finished, and has as many winners as are asked for, or all there are."""
    found = {each.id for each in record.population}
    return record.finished and len(record.winners) >= min(winners, len(found))


def judge_of(
    space: StudySpace, costs: Mapping[str, Costs], within: Mapping[str, float], scores: Scores
) -> Judge[Candidate]:
    """Return what tells the worth of candidates; those that the study skips have none.

    Parameters
    ----------
    space : StudySpace
    costs : mapping of str to Costs
        By quantity.
    within : mapping of str to float
        The most of each quantity.
    scores : Scores
    """
    never = tuple(Cost(math.inf, math.inf, within[quantity]) for quantity in costs)

    def worth(candidates: Sequence[Candidate], points: Sequence[Point]) -> list[Judged[Candidate]]:
        told = [(*each(points), within[quantity]) for quantity, each in costs.items()]
        return [
            Judged(
                candidate,
                float(score),
                tuple(Cost(float(value[place]), float(high[place]), bound) for value, high, bound in told),
            )
            for place, (candidate, score) in enumerate(zip(candidates, scores(points), strict=True))
        ]

    def judge(candidates: Sequence[Candidate]) -> list[Judged[Candidate]]:
        points = [space.point(each) for each in candidates]
        rules = space.study.skip
        kept = [at for at, point in enumerate(points) if not any(rule.matches(point) for rule in rules)]
        found = [Judged(each, -math.inf, never) for each in candidates]
        told = worth([candidates[at] for at in kept], [points[at] for at in kept]) if kept else []
        for at, each in zip(kept, told, strict=True):
            found[at] = each
        return found

    return judge


@dataclass
class _Run:
    """A search in progress, and what is written of it.

    Parameters
    ----------
    space : StudySpace
    folder : Path
    asked : Asked
    memory : Memory
    spent_s : float
        Of earlier calls, and of this one once all generations are done.
    began : float
        When this call did; infinite once all generations are done.
    recalled : int
        Candidates that an earlier call estimated.
    """

    space: StudySpace
    folder: Path
    asked: Asked
    memory: Memory[Candidate]
    spent_s: float = 0.0
    began: float = field(default_factory=time.monotonic)
    recalled: int = 0

    def __post_init__(self) -> None:
        asked = self.asked
        settings = Settings(asked.population, asked.generations, asked.parents, asked.mutation, asked.seed)
        self.evolution = Evolution(self.space, self.memory, settings)
        self.counted = (0, 0)
        self.fronts: list[Judged[Candidate]] = []

    def go(self, before: SearchRecord | None, progress: ProgressKind, say: Say) -> None:
        """Search until all generations are done, from where an earlier call was.

        Raises
        ------
        InputError
            If nothing that was drawn keeps the bound.
        """
        if before is None:
            with terminal.console(progress).status("drawing the first generation"):
                self.evolution.start()
            self._check_started()
        else:
            self._resume(before)
        saved = time.monotonic()
        try:
            with terminal.console(progress).status(self._line()) as status:
                while self.evolution.generation < self.asked.generations:
                    self.evolution.advance()
                    status.update(self._line())
                    if time.monotonic() - saved > SAVED_S:
                        write_search(self.folder, self.record([]))
                        saved = time.monotonic()
        except KeyboardInterrupt:
            say(f"interrupted after {self._line()}; the same command goes on")
            raise
        finally:
            self.spent_s, self.began = self._spent(), math.inf
            write_search(self.folder, self.record([]))
        say(self._line())

    def record(self, winners: Sequence[FoundRecord], finished: bool = False) -> SearchRecord:
        """Return what is written."""
        asked_for, estimated = self.counted
        finite = [each for each in self.memory.known.values() if math.isfinite(each.score + each.excess)]
        self.fronts = front([*self.fronts, *finite])
        population, best = (
            [_found(self.space, self.asked, each, {}) for each in some]
            for some in (self.evolution.population, self.fronts)
        )
        return SearchRecord(
            asked=self.asked,
            generation=self.evolution.generation,
            asked_for=asked_for + self.memory.asked,
            estimated=estimated + len(self.memory.known) - self.recalled,
            spent_s=self._spent(),
            state=self.evolution.settled,
            population=population,
            front=best,
            winners=list(winners),
            finished=finished,
        )

    def _spent(self) -> float:
        """Return the seconds of all calls, without those in which winners were measured."""
        return self.spent_s + max(0.0, time.monotonic() - self.began)

    def _resume(self, before: SearchRecord) -> None:
        """Go on where an earlier call was."""
        self.evolution.generation = before.generation
        try:
            self.evolution.go_on_with(before.state)
        except ValueError as error:
            raise InputError(
                f"{str(self.folder)!r}: the state of its random numbers is damaged: {error}"
            ) from None
        self.evolution.population = self._recalled(before.population)
        self.fronts = self._recalled(before.front)
        self.memory.known = {each.candidate: each for each in (*self.fronts, *self.evolution.population)}
        self.recalled = len(self.memory.known)
        self.counted, self.spent_s = (before.asked_for, before.estimated), before.spent_s

    def _recalled(self, found: Sequence[FoundRecord]) -> list[Judged[Candidate]]:
        """Return candidates that were written, perhaps elsewhere."""
        try:
            return [_judged(self.space, self.asked, each) for each in found]
        except InputError as error:
            raise InputError(f"{str(self.folder)!r} holds a damaged search: {error}") from None

    def _check_started(self) -> None:
        if self.evolution.population:
            return
        drawn, nearest = len(self.memory.known), self.evolution.nearest
        assert nearest is not None
        what = _label(self.space, nearest.candidate)
        bounds = " and ".join(f"{name}={most:g}" for name, most in self.asked.within.items())
        if not math.isfinite(nearest.excess):
            raise InputError(
                f"--within {bounds}: no cost of {drawn:,} candidates that were drawn is known: the study "
                "skips them, or their networks could not be made or measured; `dlas run` tells why"
            )
        if nearest.excess <= 1:
            raise InputError(
                f"--maximise {self.asked.maximise!r}: of {drawn:,} candidates that were drawn none that "
                "keeps the bounds has a score: their networks could not be made; `dlas run` tells why"
            )
        named = zip(self.asked.within, nearest.costs, strict=True)
        costs = ", ".join(f"{name}={cost.value:.4g} (at most {cost.high:.4g})" for name, cost in named)
        raise InputError(
            f"--within {bounds}: none of {drawn:,} candidates that were drawn keeps it; the nearest, {what}, "
            f"has {costs}"
        )

    def _line(self) -> str:
        best = self.evolution.population[0] if self.evolution.population else None
        quantity = next(iter(self.asked.within))
        told = f", best score {best.score:.4g} at {quantity}={best.costs[0].value:.4g}" if best else ""
        return f"generation {self.evolution.generation} of {self.asked.generations}{told}"


def _label(space: StudySpace, candidate: Candidate) -> str:
    """Return a candidate's values on the axes on which candidates differ."""
    values = dict(zip(space.axes, candidate, strict=True))
    differing = [axis for axis in values if space.study.axes[axis].open or space.study.axes[axis].size > 1]
    told = (values[axis] for axis in differing)
    return " / ".join(label(each.content()) if isinstance(each, Choice) else str(each) for each in told)


def _found(
    space: StudySpace, asked: Asked, judged: Judged[Candidate], measured: Mapping[tuple[str, str], float]
) -> FoundRecord:
    """Return a candidate as it is written."""
    point: Point = space.point(judged.candidate)
    return FoundRecord(
        label=_label(space, judged.candidate),
        content=space.content(judged.candidate),
        score=judged.score,
        costs={
            name: CostRecord(value=cost.value, high=cost.high, measured=measured.get((name, point.id)))
            for name, cost in zip(asked.within, judged.costs, strict=True)
        },
        id=point.id,
    )


def _judged(space: StudySpace, asked: Asked, found: FoundRecord) -> Judged[Candidate]:
    """Return a candidate that was written.

    Raises
    ------
    InputError
        If it is none of the study.
    """
    costs = tuple(
        Cost(found.costs[name].value, found.costs[name].high, most) for name, most in asked.within.items()
    )
    try:
        candidate = space.of_content(found.content)
        hash(candidate)
        known = [
            space.study.axes[axis].holds(value) for axis, value in zip(space.axes, candidate, strict=True)
        ]
    except (KeyError, TypeError, AttributeError) as error:
        raise InputError(f"{found.label!r}: {type(error).__name__}: {error}") from None
    if not all(known):
        raise InputError(f"{found.label!r} is no candidate of the study")
    return Judged(candidate, found.score, costs)


def _measured(
    space: StudySpace,
    quantities: Iterable[str],
    chosen: Sequence[Judged[Candidate]],
    folder: Path,
    session: Session,
) -> dict[tuple[str, str], float]:
    """Measure candidates, and return each quantity of those that have it, by its name and the point's id."""
    points = [space.point(each.candidate) for each in chosen]
    session.check(space.study, folder, points)
    session.run(space.study, folder, points)
    rows = read(folder)
    results = rows[timed(rows)]
    return {
        (name, row): float(value)
        for name in quantities
        if name in results
        for row, value in zip(results["id"], results[name], strict=True)
        if pd.notna(value)
    }


def _frame(record: SearchRecord) -> pd.DataFrame:
    """Return the winners as a table: of each bounded quantity what was estimated, at most, and measured."""
    lines = []
    for each in record.winners:
        line: dict[str, Any] = {"id": each.id, "label": each.label, "score": each.score}
        for name, cost in each.costs.items():
            line |= {name: cost.value, f"{name}_high": cost.high, f"{name}_measured": cost.measured}
        lines.append({**line, "kept": keeps(each, record.asked.within)})
    frame = pd.DataFrame(lines)
    return frame.astype({"kept": "boolean"}) if lines else frame
