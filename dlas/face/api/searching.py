"""Search the drawn part of a study for what scores highest within a bound, and measure the winners again."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from dlas.errors import InputError
from dlas.face.console.progress import ConsoleDisplay, ProgressKind
from dlas.face.console.views import View
from dlas.sweep.engine.session import Session, Steps
from dlas.sweep.study.reading import as_study
from dlas.sweep.study.study import Study

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
    from dlas.face.console.searching import table
    from dlas.prediction.adaptive.budget import LoopBudget
    from dlas.prediction.adaptive.evolution import strategy as evolution
    from dlas.prediction.adaptive.evolution.estimators import costs_of, scores_of
    from dlas.prediction.adaptive.evolution.record import SearchRequest, read_search
    from dlas.prediction.adaptive.evolution.space import StudySpace
    from dlas.prediction.adaptive.loop import Loop

    if winners < 0:
        raise InputError(f"--winners {winners}: expected a number from 0 on")
    space, folder = StudySpace.of(as_study(study)), Path(out)
    several = [estimator] if isinstance(estimator, str | os.PathLike) else estimator
    asked = SearchRequest.checked(
        study=space.study.toml(),
        seed=space.study.seed,
        estimators=[os.fspath(each) for each in several],
        maximise=os.fspath(maximise),
        within=dict(within),
        population=population,
        generations=generations,
        parents=parents,
        mutation=mutation,
    )
    before = evolution.earlier_search(folder, space, asked)
    if before is not None and evolution.is_complete(before, winners):
        say(f"{folder} is finished: {before.generation} generations")
        return View(evolution.winners_frame(before), table(before))
    with Session.open(steps, cache=cache, display=ConsoleDisplay.of(progress)) as session:
        costs = costs_of(asked.estimators, space, asked.within, session)
        scores = scores_of(asked.maximise, space, session)
        try:
            strategy = evolution.EvolutionStrategy(space, asked, costs, scores, winners, before, say)
        except InputError as error:
            raise InputError(f"{str(folder)!r} holds a damaged search: {error}") from None
        session.check(space.small, folder, list(space.small.points()))
        budget = LoopBudget(before_s=before.spent_s if before is not None else 0.0)
        Loop(strategy, session, folder, budget, say).run()
    record = read_search(folder)
    return View(evolution.winners_frame(record), table(record))
