"""Measure a share of a study's points, chosen well, and predict the others."""

from __future__ import annotations

import os
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dlas.errors import InputError
from dlas.face.console.progress import ConsoleDisplay, ProgressKind
from dlas.face.console.views import View
from dlas.prediction.learning.intervals import LEVEL
from dlas.sweep.engine.checks import unsupported
from dlas.sweep.engine.planning import Planner
from dlas.sweep.engine.session import Session
from dlas.sweep.rows.frame import read, without_measured
from dlas.sweep.rows.predictions import PREDICTED, Bounds, PredictedPoint, read_predictions, write_predictions
from dlas.sweep.rows.results import Row
from dlas.sweep.rows.schema import Device
from dlas.sweep.study.point import Choice, Point
from dlas.sweep.study.reading import as_study
from dlas.sweep.study.study import Study

if TYPE_CHECKING:
    from dlas.prediction.learning.exploring.share import Rest
    from dlas.prediction.learning.exploring.space import Space

TARGET = "latency_s"
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
    from dlas.face.api.exploring_sweeps import Sweeps, earlier_rows
    from dlas.face.console.exploring import summary
    from dlas.prediction.learning.exploring.choosing import first_share
    from dlas.prediction.learning.exploring.share import budget_of, check_covers, measure_share, predict_rest
    from dlas.prediction.learning.exploring.space import Space

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
        able, refused = _able(chosen)
        space = Space.of(able)
        first = first_share(space, chosen.seed)
        check_covers(space, share, len(first))
        of_others = [point for point in read_predictions(folder) if point.row.study != chosen.name]
        earlier = earlier_rows(folder, Planner(chosen.measure, session.root), space, session.retry)
        unwritten = [point for point in refused if point.id not in earlier.ids]
        budget = budget_of(share, len(space))
        sweeps = Sweeps(chosen, folder, space, unwritten, budget, session, len(earlier.known))
        known = measure_share(
            space, share, first, earlier.known, sweeps.measure, seed=chosen.seed, again=earlier.again
        )
        sweeps.finish()
    rest = predict_rest(space, known)
    write_predictions(folder, [*of_others, *_predicted(chosen, space, rest)])
    frame = without_measured(read(folder, predictions=True))
    own = frame["id"].isin([point.id for point in (*able, *refused)])
    outdated = len({*earlier.again} - {*known})
    shown = summary(len(space), known, rest, refused=len(refused), cover=len(first), outdated=outdated)
    return View(frame[own].reset_index(drop=True), shown)


def _able(study: Study) -> tuple[list[Point], list[Point]]:
    """Return the points that can be measured here, and those that are unsupported at once.

    Raises
    ------
    InputError
        If none can be measured.
    """
    reasons: dict[tuple[Choice, Choice, str], str | None] = {}
    able: list[Point] = []
    refused: list[Point] = []
    for point in study.points():
        key = point.hardware, point.compiler, point.task
        if key not in reasons:
            reasons[key] = unsupported(point)
        (refused if reasons[key] else able).append(point)
    if not able:
        raise InputError(f"no point of the study can be measured here: {next(iter(reasons.values()))}")
    return able, refused


def _predicted(study: Study, space: Space, rest: Rest) -> list[PredictedPoint]:
    """Return what is written of the points that were predicted."""
    devices: dict[Choice, Device] = {}
    found = []
    for at, place in enumerate(rest.rows.tolist()):
        point = space.points[place]
        if point.hardware not in devices:
            devices[point.hardware] = point.hardware.make("hardware").describe()
        row = Row(
            **point.content(),
            id=point.id,
            key="",
            study=study.name,
            status=PREDICTED,
            device=devices[point.hardware],
        )
        sure = bool(rest.low[at] == rest.low[at])
        bounds = Bounds(
            value=float(rest.seconds[at]),
            low=float(rest.low[at]) if sure else None,
            high=float(rest.high[at]) if sure else None,
            level=LEVEL if sure else None,
        )
        found.append(PredictedPoint(row, {TARGET: bounds}, rest.digest, True, rest.doubts[at]))
    return found
