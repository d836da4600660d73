"""Fit predictors to rows, and evaluate them."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.console import Group, RenderableType
from rich.text import Text

from dlas.errors import InputError
from dlas.face.api.results import Folders, paths_of, patterns
from dlas.face.tables.view import View

if TYPE_CHECKING:
    from dlas.prediction.learning.points import Points
    from dlas.prediction.learning.settings import Evaluated
    from dlas.prediction.learning.splits import Criterion
    from dlas.stack import Predictor

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

    Rows of each machine, number of threads, task, compiler and algorithm are fitted by themselves, those of
    several machines alike too; with ``hold_out="instance"`` those together, also for one that was never
    measured.

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
    from dlas.prediction.learning import stored
    from dlas.prediction.learning.points import read_points
    from dlas.prediction.learning.settings import evaluate_settings, fit_settings

    folder = Path(to)
    stored.check_named(part)
    stored.check_new(folder)
    predictor = _predictor(part, options or {})
    points = read_points(paths_of(rows), target, patterns(where), kernels=predictor.level == "kernel")
    criterion = _criterion(hold_out, points)
    if criterion.of_settings and not criterion.of_alike:
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
    predictors: Sequence[str | Mapping[str, Any]],
    target: str,
    hold_out: str | None = None,
    row_counts: Sequence[int] = (),
    where: str | Sequence[str] = (),
    seed: int = 0,
    say: Say = lambda line: None,
) -> View:
    """Return how wrong predictors are on what is held out, side by side; parameters as for :func:`fit`.

    Parameters
    ----------
    predictors : sequence of str or mapping
        Names of parts, which are fitted with their default options; parts with options, as studies write
        them; or folders that :func:`fit` wrote, whose options are taken.
    row_counts : sequence of int
        Fit to so many rows of those that are not held out, drawn at random, and return the errors by these
        numbers.
    """
    from dlas.prediction.learning.points import read_points
    from dlas.prediction.learning.settings import evaluate_settings

    chosen = dict(map(_named, predictors))
    kernels = any(each.level == "kernel" for each in chosen.values())
    points = read_points(paths_of(rows), target, patterns(where), kernels=kernels)
    criterion = _criterion(hold_out, points)
    if row_counts:
        return _curves(chosen, points, target, criterion, sorted(set(row_counts)), seed, say)
    return _view(target, criterion, points, evaluate_settings(chosen, points, target, criterion, seed, say))


def _predictor(part: str, options: Mapping[str, Any]) -> Predictor:
    """Return a predictor with validated options."""
    from dlas.sweep.study.point import Choice

    made: Predictor = Choice.checked("predictor", part, options).make("predictor")
    made.verify()
    return made


def _named(part: str | Mapping[str, Any]) -> tuple[str, Predictor]:
    """Return what tables call a predictor, and it: a part, one with options, or that of a folder.

    Raises
    ------
    InputError
        If there is none.
    """
    from dlas.prediction.learning import stored
    from dlas.sweep.rows.labels import label

    if isinstance(part, str):
        return part, stored.read(Path(part)).part if Path(part).is_dir() else _predictor(part, {})
    options = dict(part)
    name = options.pop("name", None)
    if not isinstance(name, str):
        raise InputError(
            f"predictor {options!r} has no name; expected a table such as "
            "{name = 'additive', costs = 'stage'}"
        )
    return label(part), _predictor(name, options)


def _criterion(text: str | None, points: Points) -> Criterion:
    from dlas.prediction.learning.fitting import default_criterion
    from dlas.prediction.learning.splits import Criterion

    return Criterion.parse(text) if text is not None else default_criterion(points)


def _view(target: str, criterion: Criterion, points: Points, evaluated: Sequence[Evaluated]) -> View:
    """Return the scores of all settings as a table to look at and to compute with."""
    from dlas.face.tables import predictors as tables

    shown: list[RenderableType] = []
    for each in evaluated:
        shown.append(tables.evaluation(each.name, target, str(criterion), each.evaluations, each.floor))
        if each.gains:
            shown.append(tables.gained(each.evaluations[0].name, str(criterion), each.gains))
    if line := tables.left_out(points.left_out):
        shown.append(Text(line, style="dim"))
    return View(tables.scores_frame(evaluated), Group(*shown))


def _curves(
    predictors: Mapping[str, Predictor],
    points: Points,
    target: str,
    criterion: Criterion,
    counts: Sequence[int],
    seed: int,
    say: Say,
) -> View:
    """Return the errors of all settings by the number of rows."""
    from dlas.face.tables import predictors as tables
    from dlas.prediction.learning.curves import curves_of_settings

    found = curves_of_settings(predictors, points, target, criterion, counts, seed, say)
    shown: list[RenderableType] = [tables.curves(each, target, str(criterion)) for each in found]
    if line := tables.left_out(points.left_out):
        shown.append(Text(line, style="dim"))
    return View(tables.curves_frame(found), Group(*shown))
