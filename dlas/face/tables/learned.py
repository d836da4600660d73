"""What predictors are asked for as tables to look at and to compute with: errors, curves, predictions."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
from rich.console import Group, RenderableType
from rich.text import Text

from dlas.analysis.matching import result_in
from dlas.face.tables import predictors as tables
from dlas.face.tables.view import View
from dlas.prediction.learning.curves import Curves
from dlas.prediction.learning.points import Points
from dlas.prediction.learning.predictions import as_rows, bounded, predict
from dlas.prediction.learning.settings import SettingEvaluation
from dlas.prediction.learning.splits import Criterion
from dlas.prediction.learning.stored import StoredPredictor
from dlas.sweep.engine.planned import Examples
from dlas.sweep.rows.predictions import MEASURED, write_predictions


def evaluated_view(
    target: str, criterion: Criterion, points: Points, evaluated: Sequence[SettingEvaluation]
) -> View:
    """Return the scores of all settings as a table to look at and to compute with."""
    shown: list[RenderableType] = []
    for each in evaluated:
        shown.append(tables.evaluation(each, target, str(criterion)))
        if each.gains:
            shown.append(tables.gained(next(iter(each.evaluations)), str(criterion), each.gains))
    if line := tables.left_out(points.left_out):
        shown.append(Text(line, style="dim"))
    return View(tables.scores_frame(evaluated), Group(*shown))


def curves_view(target: str, criterion: Criterion, points: Points, found: Sequence[Curves]) -> View:
    """Return the errors of all settings by the number of rows."""
    shown: list[RenderableType] = [tables.curves(each, target, str(criterion)) for each in found]
    if line := tables.left_out(points.left_out):
        shown.append(Text(line, style="dim"))
    return View(tables.curves_frame(found), Group(*shown))


def predicted_view(
    known: StoredPredictor,
    made: Examples,
    out: str | os.PathLike[str] | None,
    within: Mapping[str, float],
    anyway: bool,
    name: str = "",
) -> View:
    """Return planned points with predictions, of a network of some name; write them if asked for it."""
    points = Points.of(made.points)
    found = predict(known, points, anyway)
    kept = bounded(found, within)
    if out is not None:
        every = as_rows([each.row for each in made.points], found, known)
        write_predictions(Path(out), [point for point, keep in zip(every, kept, strict=True) if keep])
    frame = found.frame(points)[kept].reset_index(drop=True)
    if name:
        frame["model"] = name
    made.failed.update(filter(None, found.refused))
    return View(frame, tables.predicted(frame, known.record.target, len(points), made.failed))


def beside_measured(known: StoredPredictor, read: Points, within: Mapping[str, float], anyway: bool) -> View:
    """Return rows with predictions beside what was measured."""
    target = known.record.target
    points = read.take(np.flatnonzero(result_in(read.frame, target))).with_operators()
    found = predict(known, points, anyway)
    beside = found.frame(points).assign(**{MEASURED: points.frame[target]})[bounded(found, within)]
    refused = Counter(filter(None, found.refused))
    return View(beside.reset_index(drop=True), tables.predicted(beside, target, len(points), refused))
