"""Predict points that were never run, rows, and networks, with a predictor in its folder."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import pandas as pd

from dlas.errors import InputError
from dlas.face.api.results import Folders, patterns
from dlas.face.console.progress import ConsoleDisplay, ProgressKind
from dlas.face.console.views import View
from dlas.sweep.engine.session import Session, Steps
from dlas.sweep.rows.frame import read, select
from dlas.sweep.rows.predictions import MEASURED

if TYPE_CHECKING:
    from dlas.prediction.learning.stored import Stored
    from dlas.sweep.engine.planned import Planned
    from dlas.sweep.study.networks import Network
    from dlas.sweep.study.study import Study

EITHER = (
    "give what to predict: a study, a folder with rows, an ONNX file, or module:Class of a torch module; or "
    "--model with a part of the axis 'model'"
)


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
    batch, size, threads, compiler, hardware
        Of ``model``, as for :meth:`FittedPredictor.predict`.
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
    from dlas.prediction.learning import stored
    from dlas.prediction.learning.networks import NetworkOptions, planned_network
    from dlas.prediction.learning.predictions import check_within
    from dlas.sweep.study.networks import is_network
    from dlas.sweep.study.reading import as_study
    from dlas.sweep.study.selecting import select_points
    from dlas.sweep.study.study import check_size

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
                f"{str(study)!r} is a folder with rows, which are measured: --out is for studies"
            )
        return _beside_measured(known, select(read(study), where), within or {}, anyway)
    display = ConsoleDisplay.of(progress)
    with Session.open(steps, cache=cache, jobs=jobs, display=display) as session:
        if network is not None:
            made, name = planned_network(known, network, asked, session, where)
            return _predicted(known, made, out, within or {}, anyway, name)
        chosen = as_study(cast("Study | Mapping[str, Any] | str", study))  # for it is no network
        check_size(chosen)
        points = select_points(chosen, where) if where else None
        made = session.plan(chosen, points, kernels=known.part.level == "kernel").required()
    return _predicted(known, made, out, within or {}, anyway)


def _predicted(
    known: Stored,
    made: Planned,
    out: str | os.PathLike[str] | None,
    within: Mapping[str, float],
    anyway: bool,
    name: str = "",
) -> View:
    """Return planned points with predictions, of a network of some name; write them if asked for it."""
    from dlas.face.console.predictors import predicted
    from dlas.prediction.learning.points import planned_points
    from dlas.prediction.learning.predictions import as_rows, bounded
    from dlas.prediction.learning.predictions import predict as predict_points
    from dlas.sweep.rows.predictions import write_predictions

    points = planned_points(made.rows, made.networks, made.kernels)
    found = predict_points(known, points, anyway)
    kept = bounded(found, within)
    if out is not None:
        chosen = [point for point, keep in zip(as_rows(made.rows, found, known), kept, strict=True) if keep]
        write_predictions(Path(out), chosen)
    frame = found.frame(points)[kept].reset_index(drop=True)
    if name:
        frame["model"] = name
    made.failed.update(filter(None, found.refused))
    return View(frame, predicted(frame, known.record.target, len(points), made.failed))


def _beside_measured(known: Stored, frame: pd.DataFrame, within: Mapping[str, float], anyway: bool) -> View:
    """Return rows with predictions beside what was measured."""
    from dlas.face.console.predictors import predicted
    from dlas.prediction.learning.points import points_of
    from dlas.prediction.learning.predictions import bounded
    from dlas.prediction.learning.predictions import predict as predict_points

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
    from dlas.prediction.learning import stored

    return FittedPredictor(stored.read(Path(folder)))


@dataclass(frozen=True)
class FittedPredictor:
    """A predictor that was fitted to rows."""

    stored: Stored

    def predict(
        self,
        what: Folders | pd.DataFrame | Network,
        *,
        batch: int | Sequence[int] = (),
        size: int | None = None,
        threads: int | None = None,
        compiler: str | None = None,
        hardware: str | Mapping[str, Any] | None = None,
        anyway: bool = False,
        cache: str | os.PathLike[str] | None = None,
        steps: Steps = "spawned",
    ) -> pd.DataFrame:
        """Return rows with predictions in place of what was measured, or a network with its predictions.

        Parameters
        ----------
        what : path, paths, DataFrame, torch.nn.Module or mapping
            Folders that ``dlas run`` wrote, or what :func:`dlas.read` returned of them; or a network: a torch
            module, the path of an ONNX file, or a part of the axis ``model``, ``{"name": "resnet50"}``. ONNX
            Runtime runs an ONNX file on one image.
        batch : int or sequence of int
            Of a network; by default 1, of training steps the least batch that was fitted.
        size : int, optional
            Height and width of a network's images, by default those that it is for: what its file says, 299
            for ``inception_v3``, 32 for networks for CIFAR-10, 224 for a torch module and for most others.
        threads : int, optional
            Of a network; by default each number of threads that was fitted.
        compiler : str, optional
            Likewise, with its options, ``metaschedule(trials=64)``, or without.
        hardware : str or mapping, optional
            The part whose programs tell a network's kernels, by default this machine's processors.
        anyway : bool
            Predict rows of a machine, compiler, ... that was never fitted too, without an interval.
        cache, steps
            Of a network, as for :func:`predict`.

        Returns
        -------
        DataFrame
            The target's column holds the prediction; beside it are ``_low`` and ``_high``, the bounds of its
            interval of level 0.9, ``unknown_kernels``, the share of it for kernels of kinds that were never
            fitted, ``in_range``, and ``doubt``, why not to trust it.

        Raises
        ------
        InputError
            If a row's setting was never fitted, or too much of a network is unknown, and not ``anyway``; or a
            network cannot be read.
        """
        from dlas.prediction.learning.networks import NetworkOptions, planned_network
        from dlas.prediction.learning.points import points_of
        from dlas.prediction.learning.predictions import predict
        from dlas.sweep.study.networks import is_network

        asked = NetworkOptions(batch, size, threads, compiler, hardware)
        if is_network(what):
            display = ConsoleDisplay.of("silent")
            with Session.open(steps, cache=cache, display=display) as session:
                made, name = planned_network(self.stored, what, asked, session)
            return _predicted(self.stored, made, None, {}, anyway, name).frame
        asked.refuse_any()
        points = points_of(what if isinstance(what, pd.DataFrame) else read(cast(Folders, what)))
        return predict(self.stored, points, anyway).frame(points)
