"""Predictors: fitted to rows, evaluated, and asked for points that were never run.

What they return is shown as a table on a terminal and in a notebook, and is a DataFrame as ``.frame``.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from dlas.errors import InputError
from dlas.face.console.progress import ConsoleDisplay, ProgressKind
from dlas.face.tables.view import View
from dlas.stack.types import Say
from dlas.sweep.engine.session import Session, Steps
from dlas.sweep.rows.files import Folders, paths_of
from dlas.sweep.rows.filters import patterns
from dlas.sweep.study.study import Study

if TYPE_CHECKING:
    from dlas.prediction.learning.fitted_predictor import FittedPredictor
    from dlas.sweep.study.networks import Network

EITHER = (
    "give what to predict: a study, a folder with rows, an ONNX file, or module:Class of a torch module; or "
    "`model=`, a part of the axis 'model'"
)


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
        What is held out in turn: ``model``, ``compression.level``, ``batch``, ...; in ten parts:
        ``network/10``; a share: ``model=30%``; or those that are named: ``model=resnet50,googlenet``. By
        default models where there are three or more.
    options : mapping, optional
        The predictor's options: ``{"trees": 100}``.
    where : str or sequence of str
        Use the rows that match: ``task=training``.
    seed : int
        Of all random numbers.
    say : callable
        Takes lines of progress.

    Raises
    ------
    InputError
        If a name does not exist, rows are too few, or a network would be on both sides.
    """
    from dlas.face.tables.learned import evaluated_view
    from dlas.prediction.learning import settings, stored
    from dlas.prediction.learning.fitting import criterion_of
    from dlas.prediction.learning.points import read_points

    folder = Path(to)
    stored.check_named(part)
    stored.check_new(folder)
    predictor = settings.predictor_of(part, options or {})
    points = read_points(paths_of(rows), target, patterns(where), kernels=predictor.level == "kernel")
    criterion = criterion_of(hold_out, points)
    if criterion.of_settings and not criterion.of_alike:
        raise InputError(
            f"`hold_out={str(criterion)!r}`: a predictor is fitted to each machine, number of threads, "
            "compiler and algorithm by itself; `dlas evaluate` tells how wrong one is on others"
        )
    protocol = settings.EvaluationProtocol(target, criterion, seed)
    evaluated = settings.evaluate_settings({part: predictor}, points, protocol, say)
    stored.write(folder, *settings.fit_settings(part, predictor, evaluated, protocol, say))
    return evaluated_view(target, criterion, points, evaluated)


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
        Fit to so many rows of those that are not held out, drawn at random, and tell the errors by these
        numbers.
    """
    from dlas.face.tables.learned import curves_view, evaluated_view
    from dlas.prediction.learning.curves import curves_of_settings
    from dlas.prediction.learning.fitting import criterion_of
    from dlas.prediction.learning.points import read_points
    from dlas.prediction.learning.settings import EvaluationProtocol, evaluate_settings, named_predictor

    chosen = dict(map(named_predictor, predictors))
    kernels = any(each.level == "kernel" for each in chosen.values())
    points = read_points(paths_of(rows), target, patterns(where), kernels=kernels)
    criterion = criterion_of(hold_out, points)
    protocol = EvaluationProtocol(target, criterion, seed)
    if row_counts:
        curves = curves_of_settings(chosen, points, protocol, sorted(set(row_counts)), say)
        return curves_view(target, criterion, points, curves)
    return evaluated_view(target, criterion, points, evaluate_settings(chosen, points, protocol, say))


def predict(
    folder: str | os.PathLike[str],
    study: Study | Mapping[str, Any] | Network | None = None,
    *,
    model: Network | None = None,
    batch: int | Sequence[int] = (),
    size: int | None = None,
    threads: int | None = None,
    compiler: str | None = None,
    hardware: str | Mapping[str, Any] | None = None,
    out: str | os.PathLike[str] | None = None,
    within: Mapping[str, float] | None = None,
    where: str | Sequence[str] = (),
    anyway: bool = False,
    cache: str | os.PathLike[str] | None = None,
    jobs: int = 1,
    steps: Steps = "spawned",
    progress: ProgressKind = "auto",
) -> View:
    """Predict the points of a study, or a network, which is neither built nor measured; return a table.

    Networks are made, as far as the cache does not have them, to know their operators.
    Of a folder with rows, predictions are shown beside what was measured.

    Parameters
    ----------
    folder : path
        What :func:`fit` wrote.
    study : Study, mapping or path, optional
        As for :func:`dlas.run`; or a folder with rows; or a network as ``model`` is, but not as a name.
    model : str, mapping, path or torch.nn.Module, optional
        Without a study, the network to predict in each setting that the predictor was fitted to: a part of
        the axis ``model`` by its name or as a mapping with its options; an ONNX file; a torch module, or
        ``"mine.py:Net"``, which is imported.
    batch : int or sequence of int
        Of a network; by default 1, of training steps the least batch that was fitted.
    size : int, optional
        Height and width of a network's images, by default those that it is for: what its file says, 299 for
        ``inception_v3``, 32 for networks for CIFAR-10, 224 for a torch module and for most others.
    threads : int, optional
        Of a network; by default each number of threads that was fitted.
    compiler : str, optional
        Of a network, with its options, ``metaschedule(trials=64)``, or without; by default each that was
        fitted.
    hardware : str or mapping, optional
        The part whose programs tell a network's kernels, by default this machine's processors.
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
        If the predictor, the study or the network is invalid, a point's setting was never fitted, or
        ``within`` names another quantity or needs an interval that there is not; ``out`` is then as it was.
    """
    from dlas.face.tables.learned import beside_measured, predicted_view
    from dlas.prediction.learning import stored
    from dlas.prediction.learning.examples import read_examples
    from dlas.prediction.learning.networks import NetworkOptions, planned_network
    from dlas.prediction.learning.points import Points
    from dlas.prediction.learning.predictions import check_within
    from dlas.sweep.study.networks import is_network
    from dlas.sweep.study.selecting import select_points

    asked = NetworkOptions(batch, size, threads, compiler, hardware)
    if (study is None) == (model is None):
        raise InputError(EITHER)
    network = study if is_network(study) else model
    if network is None:
        asked.refuse_any()
    known, where = stored.read(Path(folder)), patterns(where)
    check_within(known, within or {}, anyway)
    if network is None and isinstance(study, str | os.PathLike) and Path(study).is_dir():
        if out is not None:
            raise InputError(
                f"{str(study)!r} is a folder with rows, which are measured: `out=` is for studies"
            )
        examples = read_examples([Path(study)], kernels=known.part.level == "kernel")
        return beside_measured(known, Points.of(examples).selected(where), within or {}, anyway)
    display = ConsoleDisplay.of(progress)
    with Session.open(steps, cache=cache, jobs=jobs, display=display) as session:
        if network is not None:
            made, name = planned_network(known, network, asked, session, where)
            return predicted_view(known, made, out, within or {}, anyway, name)
        chosen = Study.of(cast("Study | Mapping[str, Any] | str", study))  # for it is no network
        chosen.check_size()
        points = select_points(chosen, where) if where else None
        made = session.plan(chosen, points, kernels=known.part.level == "kernel").required()
    return predicted_view(known, made, out, within or {}, anyway)


def predictor(folder: str | os.PathLike[str]) -> FittedPredictor:
    """Return the predictor that :func:`fit` wrote into a folder.

    Raises
    ------
    InputError
        If it is none, is damaged, or was written by a newer version.
    """
    from dlas.prediction.learning import stored
    from dlas.prediction.learning.fitted_predictor import FittedPredictor

    return FittedPredictor(stored.read(Path(folder)), ConsoleDisplay.of("silent"))
