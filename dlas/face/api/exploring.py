"""Measure a share of a study's points, chosen well, and predict the others."""

from __future__ import annotations

import os
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

from dlas.face.console.progress import ConsoleDisplay, ProgressKind
from dlas.face.console.views import View
from dlas.sweep.engine.session import Session
from dlas.sweep.rows.frame import read, without_measured
from dlas.sweep.rows.predictions import read_predictions, write_predictions
from dlas.sweep.study.reading import as_study
from dlas.sweep.study.study import Study

OTHER_FOLDER = "Give another --out: what follows from the rows of one machine holds for no other."


def explore(
    study: Study | Mapping[str, Any] | str | os.PathLike[str],
    out: str | os.PathLike[str],
    *,
    share: float = 0.1,
    jobs: int = 1,
    retry: str | Collection[str] = (),
    cache: str | os.PathLike[str] | None = None,
    cache_gib: float = 20.0,
    keep_builds: bool = False,
    in_process: bool = False,
    progress: ProgressKind = "auto",
) -> View:
    """Measure a share of a study's points and predict the latencies of the others.

    The first points have every value of every axis; the others follow in batches, each of the points whose
    measurements are expected to tell most about those that are not measured, or to show a faster one.
    Interrupted, it leaves complete rows; the same call goes on, and one with a larger share extends them.
    Rows in the folder that are out of date are measured again within the share, and otherwise not relied on.

    Parameters
    ----------
    study : Study, mapping or path
        As for :func:`dlas.run`; of one with ``[sample]``, the points that it draws.
    out : path
        Folder for ``results.jsonl``, as :func:`dlas.run` writes it, and for ``predictions.jsonl``, in which
        predictions of other studies stay.
    share : float
        Of the points that can be measured here, above 0 and at most 1.
    jobs, retry, cache, cache_gib, keep_builds, in_process, progress
        As for :func:`dlas.run`.

    Returns
    -------
    View
        ``frame`` holds the measured and the predicted points, as :func:`dlas.read` returns them.

    Raises
    ------
    InputError
        If the study or an argument is invalid, the share is too small to have every value, or the
        folder holds rows of another machine; nothing has been written then.
    Unfinished
        If no measured point has a time, or as for :func:`dlas.run`.
    """
    from dlas.face.console.exploring import summary
    from dlas.prediction.adaptive.budget import LoopBudget
    from dlas.prediction.adaptive.loop import Loop
    from dlas.prediction.adaptive.share.share import budget_of, predict_rest
    from dlas.prediction.adaptive.share.strategy import ShareStrategy

    chosen, folder = as_study(study), Path(out)
    budget_of(share, 1)
    with Session.open(
        "inline" if in_process else "spawned",
        cache=cache,
        cache_gib=cache_gib,
        jobs=jobs,
        retry=retry,
        keep_builds=keep_builds,
        display=ConsoleDisplay.of(progress),
    ) as session:
        session.check(chosen, folder, advice=OTHER_FOLDER)
        strategy = ShareStrategy(chosen, share, session.root, session.retry)
        of_others = [point for point in read_predictions(folder) if point.row.study != chosen.name]
        budget = LoopBudget(points=strategy.budget)
        Loop(strategy, session, folder, budget, session.display.say).run()
    rest = predict_rest(strategy.space, strategy.known)
    write_predictions(folder, [*of_others, *strategy.predicted_points(rest)])
    frame = without_measured(read(folder, predictions=True))
    frame = frame[frame["id"].isin([point.id for point in chosen.points()])]
    return View(frame.reset_index(drop=True), summary(strategy, rest))
