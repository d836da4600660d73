"""Fit predictors to rows, evaluate them, and predict points that were never run."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pandas as pd
from rich.console import Group
from rich.text import Text

from dlas.api.results import Folders, paths_of, patterns
from dlas.console.views import View
from dlas.errors import InputError
from dlas.rows.frame import read, select
from dlas.rows.predictions import MEASURED

if TYPE_CHECKING:
    from dlas.api.running import Progress, Steps
    from dlas.learning.points import Points
    from dlas.learning.settings import Evaluated
    from dlas.learning.splits import Criterion
    from dlas.learning.stored import Stored
    from dlas.stack import Predictor
    from dlas.study.study import Study

Say = Callable[[str], None]


def fit(
    part: str,
    rows: Folders,
    *,
    target: str,
    to: str | os.PathLike[str],
    hold_out: str | None = None,
    options: Mapping[str, Any] | None = None,
    where: str | Sequence[str] = (),
    seed: int = 0,
    say: Say = lambda line: None,
) -> View:
    """Fit a predictor to rows, write it into a folder, and return how wrong it is on what is held out.

    Rows of each machine, number of threads, task, compiler and algorithm are fitted by themselves.

    Parameters
    ----------
    part : str
        The predictor, as ``dlas list predictor`` names it.
    rows : path or paths
        Folders that ``dlas run`` wrote.
    target : str
        The column to predict: ``latency_s``, ``peak_memory_bytes``.
    to : path
        The predictor's folder; it must not exist.
    hold_out : str, optional
        What is held out in turn: ``model``, ``compression.level``, ``batch``, ...; or
        ``model=resnet50,googlenet``, or ``model=30%``. By default models where there are three or more.
    options : mapping, optional
        The predictor's options.
    where : str or sequence of str
        Filters, such as ``task=training``.
    seed : int
    say : callable
        Takes lines of progress.

    Raises
    ------
    InputError
        If a name does not exist, rows are too few, or a network would be on both sides.
    """
    from dlas.learning import stored
    from dlas.learning.points import read_points
    from dlas.learning.settings import evaluate_settings, fit_settings

    folder = Path(to)
    stored.check_named(part)
    stored.check_new(folder)
    predictor = _predictor(part, options or {})
    points = read_points(paths_of(rows), target, patterns(where), kernels=predictor.level == "kernel")
    criterion = _criterion(hold_out, points)
    if criterion.of_settings:
        raise InputError(
            f"--hold-out {criterion}: a predictor is fitted to each machine, number of threads, compiler and "
            "algorithm by itself; `dlas evaluate` tells how wrong one is on others"
        )
    evaluated = evaluate_settings({part: predictor}, points, target, criterion, seed, say)
    stored.write(folder, *fit_settings(part, predictor, evaluated, target, criterion, seed, say))
    return _view(target, criterion, points, evaluated)


def evaluate(
    rows: Folders,
    *,
    predictors: Sequence[str],
    target: str,
    hold_out: str | None = None,
    where: str | Sequence[str] = (),
    seed: int = 0,
    say: Say = lambda line: None,
) -> View:
    """Return how wrong predictors are on what is held out, side by side; parameters as for :func:`fit`.

    Parameters
    ----------
    predictors : sequence of str
        Names of parts, which are fitted with their default options, or folders that :func:`fit` wrote,
        whose options are taken.
    """
    from dlas.learning.points import read_points
    from dlas.learning.settings import evaluate_settings

    chosen = {name: _named(name) for name in predictors}
    kernels = any(each.level == "kernel" for each in chosen.values())
    points = read_points(paths_of(rows), target, patterns(where), kernels=kernels)
    criterion = _criterion(hold_out, points)
    return _view(target, criterion, points, evaluate_settings(chosen, points, target, criterion, seed, say))


def predict(
    folder: str | os.PathLike[str],
    study: Study | Mapping[str, Any] | str | os.PathLike[str],
    *,
    out: str | os.PathLike[str] | None = None,
    within: Mapping[str, float] | None = None,
    where: str | Sequence[str] = (),
    anyway: bool = False,
    cache: str | os.PathLike[str] | None = None,
    jobs: int = 1,
    steps: Steps = "spawned",
    progress: Progress = "auto",
) -> View:
    """Predict the points of a study, which are neither built nor measured, and return them as a table.

    Their networks are made, as far as the cache does not have them, to know their operators.
    Of a folder with rows, predictions are shown beside what was measured.

    Parameters
    ----------
    folder : path
        What :func:`fit` wrote.
    study : Study, mapping or path
        As for :func:`dlas.run`; or a folder with rows.
    out : path, optional
        For a study, the folder to write ``predictions.jsonl`` into, for ``dlas.read(out, predictions=True)``.
    within : mapping of str to float, optional
        Keep the points whose upper bound is at most so much: ``{"latency_s": 0.05}``.
    where : str or sequence of str
        Predict the points that match, as for :func:`dlas.run`.
    anyway : bool
        Predict points of a machine, compiler, ... that was never fitted too, without an interval.
    cache, jobs, steps, progress
        As for :func:`dlas.run`.

    Raises
    ------
    InputError
        If the predictor or the study is invalid, a point's setting was never fitted, or ``within`` names
        another quantity or needs an interval that there is not.
    """
    from dlas.api.planned import planned
    from dlas.console.predictors import predicted
    from dlas.learning import stored
    from dlas.learning.points import planned_points
    from dlas.learning.predictions import as_rows, bounded, check_within
    from dlas.learning.predictions import predict as predict_points
    from dlas.rows.predictions import write_predictions

    known, where = stored.read(Path(folder)), patterns(where)
    check_within(known, within or {}, anyway)
    if isinstance(study, str | os.PathLike) and Path(study).is_dir():
        if out is not None:
            raise InputError(
                f"{str(study)!r} is a folder with rows, which are measured: --out is for studies"
            )
        return _beside_measured(known, select(read(study), where), within or {}, anyway)
    of_kernels = known.part.level == "kernel"
    made = planned(
        study, where=where, cache=cache, jobs=jobs, steps=steps, progress=progress, kernels=of_kernels
    )
    points = planned_points(made.rows, made.networks, made.kernels)
    found = predict_points(known, points, anyway)
    kept = bounded(found, within or {})
    if out is not None:
        chosen = [point for point, keep in zip(as_rows(made.rows, found, known), kept, strict=True) if keep]
        write_predictions(Path(out), chosen)
    frame = found.frame(points)[kept].reset_index(drop=True)
    made.failed.update(filter(None, found.refused))
    return View(frame, predicted(frame, known.record.target, len(points), made.failed))


def _beside_measured(known: Stored, frame: pd.DataFrame, within: Mapping[str, float], anyway: bool) -> View:
    """Return rows with predictions beside what was measured."""
    from dlas.console.predictors import predicted
    from dlas.learning.points import points_of
    from dlas.learning.predictions import bounded
    from dlas.learning.predictions import predict as predict_points

    target = known.record.target
    points = points_of(frame[frame["status"].eq("ok") & frame[target].notna()])
    found = predict_points(known, points, anyway)
    beside = found.frame(points).assign(**{MEASURED: points.frame[target]})[bounded(found, within)]
    refused = Counter(filter(None, found.refused))
    return View(beside.reset_index(drop=True), predicted(beside, target, len(points), refused))


def predictor(folder: str | os.PathLike[str]) -> FittedPredictor:
    """Return the predictor that :func:`fit` wrote into a folder.

    Raises
    ------
    InputError
        If it is none, is damaged, or was written by a newer version.
    """
    from dlas.learning import stored

    return FittedPredictor(stored.read(Path(folder)))


@dataclass(frozen=True)
class FittedPredictor:
    """A predictor that was fitted to rows."""

    stored: Stored

    def predict(self, rows: Folders | pd.DataFrame, *, anyway: bool = False) -> pd.DataFrame:
        """Return rows with predictions in place of what was measured.

        Parameters
        ----------
        rows : path, paths or DataFrame
            Folders that ``dlas run`` wrote, or what :func:`dlas.read` returned of them.
        anyway : bool
            Predict rows of a machine, compiler, ... that was never fitted too, without an interval.

        Returns
        -------
        DataFrame
            The target's column holds the prediction; beside it are ``_low`` and ``_high``, the bounds of its
            interval of level 0.9, ``in_range``, and ``doubt``, why not to trust it.

        Raises
        ------
        InputError
            If a row's setting was never fitted, and not ``anyway``.
        """
        from dlas.learning.points import points_of
        from dlas.learning.predictions import predict

        points = points_of(rows if isinstance(rows, pd.DataFrame) else read(rows))
        return predict(self.stored, points, anyway).frame(points)


def _predictor(part: str, options: Mapping[str, Any]) -> Predictor:
    """Return a predictor with validated options."""
    from dlas.study.point import Choice

    made: Predictor = Choice.checked("predictor", part, options).make("predictor")
    made.verify()
    return made


def _named(name: str) -> Predictor:
    """Return the predictor of a name, or that of a stored predictor's folder."""
    from dlas.learning import stored

    return stored.read(Path(name)).part if Path(name).is_dir() else _predictor(name, {})


def _criterion(text: str | None, points: Points) -> Criterion:
    from dlas.learning.fitting import default_criterion
    from dlas.learning.splits import Criterion

    return Criterion.parse(text) if text is not None else default_criterion(points)


def _view(target: str, criterion: Criterion, points: Points, evaluated: Sequence[Evaluated]) -> View:
    """Return the scores of all settings as a table to look at and to compute with."""
    from dlas.console import predictors as tables

    shown = [
        tables.evaluation(each.name, target, str(criterion), each.evaluations, each.floor)
        for each in evaluated
    ]
    if line := tables.left_out(points.left_out):
        shown.append(Text(line, style="dim"))
    return View(tables.scores_frame(evaluated), Group(*shown))
