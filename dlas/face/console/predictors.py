"""Tables of predictors: how wrong they are on what was held out, and what they predict."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict

import pandas as pd
from rich.console import Group, RenderableType
from rich.text import Text

from dlas.face.console.cells import GridCell, GridColumn, names
from dlas.face.console.grid import Grid
from dlas.prediction.learning.curves import Curves
from dlas.prediction.learning.evaluation import CLOSE, Evaluation, KernelScores
from dlas.prediction.learning.gains import Gain, Range
from dlas.prediction.learning.intervals import LEVEL, fewest_groups
from dlas.prediction.learning.metrics import WITHIN, Scores
from dlas.prediction.learning.settings import Evaluated
from dlas.sweep.rows.columns import AXES, INSTANCE, MACHINE
from dlas.sweep.rows.labels import MISSING, number_of, points, shortened, shown_in
from dlas.sweep.rows.predictions import MEASURED, UNKNOWN, bound_names

OF_MACHINES = (MACHINE, INSTANCE)
MOST_FOLDS = 40
"""Most held-out groups that have lines of their own."""
MOST_LINES = 40
"""Most predicted points that a table shows."""
GAINS = 2
"""Shares within a relative error of which the gain is told, those that MIRAGE's Table 8 has."""
WORST = 3
"""Rows with the largest errors that are named."""


def evaluation(
    setting: str, target: str, hold_out: str, evaluations: Sequence[Evaluation], floor: float | None
) -> RenderableType:
    """Return the table of predictors on the groups that were held out in one setting.

    Parameters
    ----------
    setting : str
        Machine, compiler, ... of the rows.
    target, hold_out : str
    evaluations : sequence of Evaluation
        At least one; the predictors before the baselines.
    floor : float or None
        The noise floor.
    """
    scores = {each.name: each.overall() for each in evaluations}
    shown: list[RenderableType] = [_overall(f"{target} on what was held out ({hold_out}): {setting}", scores)]
    folds = {each.name: each.by_fold() for each in evaluations}
    if 1 < len(folds[evaluations[0].name]) <= MOST_FOLDS:
        shown.append(_by_fold(folds))
    for each in evaluations:
        if kernels := each.by_kernel():
            shown.append(_by_kernel(each.name, kernels))
    return Group(*shown, *_notes(evaluations[0], scores[evaluations[0].name], floor))


def _overall(title: str, scores: Mapping[str, Scores]) -> Grid:
    """Return one line a predictor."""
    rows = list(scores.values())
    columns = [names("predictor", list(scores)), _column("rows", [str(row.rows) for row in rows])]
    columns.append(_column("mean error", [_percent(row.mape) for row in rows]))
    for place, limit in enumerate(WITHIN):
        columns.append(
            _column(f"within {limit:.0%}", [f"{row.within[place]:.0%}" for row in rows], drop=4 - place)
        )
    columns += [
        _column("RMSE / mean", [_percent(row.rmse_of_mean) for row in rows]),
        _column("Spearman", [_number(row.spearman) for row in rows]),
        _column("Kendall", [_number(row.kendall) for row in rows], drop=5),
        _column("covered", [_covered(row) for row in rows]),
        _column("width", [_percent(row.width) for row in rows]),
    ]
    return Grid(columns, above=[Text(title, style="bold")])


def _by_fold(folds: Mapping[str, Mapping[str, Scores]]) -> Grid:
    """Return the mean error by group, one column a predictor."""
    groups = list(next(iter(folds.values())))
    first = next(iter(folds.values()))
    columns = [names("held out", groups), _column("rows", [str(first[group].rows) for group in groups])]
    for name, scores in folds.items():
        columns.append(_column(name, [_percent(scores[group].mape) for group in groups]))
    return Grid(columns, above=[Text("mean error by what was held out", style="bold")])


def _by_kernel(predictor: str, kernels: Sequence[KernelScores]) -> Grid:
    """Return the errors of a predictor by kind of kernel."""
    columns = [
        names("kernels", [each.kind for each in kernels]),
        _column("number", [f"{each.count:,}" for each in kernels]),
        _column("share of time", [_percent(each.share) for each in kernels]),
        _column("mean error", [_percent(each.mape) for each in kernels]),
        _column(f"within {CLOSE:.0%}", [f"{each.within:.0%}" for each in kernels]),
    ]
    return Grid(columns, above=[Text(f"{predictor}: kernels of what was held out", style="bold")])


def curves(found: Curves, target: str, hold_out: str) -> RenderableType:
    """Return the table of errors by the number of rows that predictors are fitted to, in one setting."""
    counts = sorted({count for scores in found.scores.values() for count in scores})
    columns = [names("predictor", list(found.scores))]
    for count in counts:
        errors = [scores[count].rmse_of_mean if count in scores else None for scores in found.scores.values()]
        columns.append(_column(number_of(count, "row"), [_percent(error) for error in errors]))
    title = f"RMSE / mean of {target} by rows fitted, on what was held out ({hold_out}): {found.name}"
    return Grid(columns, above=[Text(title, style="bold")], below=[Text(_floor(found.floor), style="dim")])


def gained(predictor: str, hold_out: str, gains: Sequence[Gain]) -> RenderableType:
    """Return the table of what fitting to several devices gains over one, by model.

    Parameters
    ----------
    predictor : str
    hold_out : str
        What makes a device: ``instance``.
    gains : sequence of Gain
        At least one.
    """
    columns = [
        names("model", [each.name for each in gains]),
        _column("comparisons", [f"{each.comparisons:,}" for each in gains]),
    ]
    for place, limit in enumerate(WITHIN[:GAINS]):
        columns.append(_column(f"within {limit:.0%}", [_least_most(each.within[place]) for each in gains]))
    columns.append(_column("RMSE", [_least_most(each.rmse) for each in gains]))
    columns.append(_column("MAE", [_least_most(each.mae) for each in gains]))
    title = f"{predictor}: gain by fitting to all other values of {hold_out} in place of one (least to most)"
    return Grid(columns, above=[Text(title, style="bold")])


def _least_most(span: Range) -> str:
    """Return the least and the most of shares, ``-1.2% to +8.9%``."""
    return MISSING if span is None else f"{span[0]:+.1%} to {span[1]:+.1%}"


def _covered(scores: Scores) -> str:
    """Return the share of rows in their intervals, with its standard error where there is one."""
    error = "" if scores.coverage_error is None else f" ± {_percent(scores.coverage_error)}"
    return _percent(scores.coverage) + error


def _notes(first: Evaluation, scores: Scores, floor: float | None) -> list[Text]:
    """Return what is to be known beside the scores of the first predictor."""
    notes = [_floor(floor)]
    if scores.coverage is None:
        notes.append(f"no interval: one of {LEVEL:.0%} takes at least {fewest_groups(LEVEL)} other groups")
    else:
        notes.append(
            f"covered: rows within their {LEVEL:.0%} interval, with the standard error over groups; "
            "width: its upper over its lower bound, less 1"
        )
    worst = ", ".join(f"{row} by {abs(guess / known - 1):.0%}" for row, guess, known in first.worst(WORST))
    notes.append(f"largest errors of {first.name}: {worst}")
    return [Text(note, style="dim") for note in notes]


def _floor(floor: float | None) -> str:
    """Return what is known of the noise floor."""
    if floor is None:
        return "noise floor: no point was measured twice (in two folders), so nobody knows it"
    return f"noise floor: {_percent(floor)}, by which measuring a point again differs"


def predicted(frame: pd.DataFrame, target: str, total: int, failed: Mapping[str, int]) -> RenderableType:
    """Return the table of predicted points, the smallest prediction first.

    Parameters
    ----------
    frame : DataFrame
        The points that are shown, with their predictions.
    target : str
        The column that was predicted.
    total : int
        Points that were predicted.
    failed : mapping of str to int
        Numbers of points that were not, by reason.
    """
    lines = frame.sort_values(target).head(MOST_LINES)
    axes = [axis for axis in (*AXES, *OF_MACHINES) if frame[axis].nunique() > 1] or ["model"]
    low, high = bound_names(target)
    words, unit, scale = shown_in(target)
    columns = [names(axis, [str(value) for value in lines[axis]], shared=True) for axis in axes]
    columns.append(_column(f"{words}, {unit}".rstrip(", "), [f"{scale * x:.4g}" for x in lines[target]]))
    if MEASURED in lines:
        columns.append(_column(MEASURED, [f"{scale * x:.4g}" for x in lines[MEASURED]]))
        errors = lines[target] / lines[MEASURED] - 1
        columns.append(_column("error", [f"{error:+.1%}" for error in errors]))
    bounds = zip(lines[low], lines[high], strict=True)
    columns.append(_column(f"{LEVEL:.0%} interval", [_interval(scale * a, scale * b) for a, b in bounds]))
    if lines[UNKNOWN].notna().any():
        columns.append(_column("unknown kernels", [_percent(share) for share in lines[UNKNOWN]]))
    columns.append(_column("doubt", [shortened(text, 60) or MISSING for text in lines["doubt"]], drop=1))
    notes = [f"{points(len(frame))} of {points(total)} that were predicted"]
    if len(frame) > len(lines):
        notes.append(f"the {len(lines):,} smallest are shown")
    notes += [f"not predicted: {points(count)}: {reason}" for reason, count in failed.items()]
    return Grid(columns, below=[Text("; ".join(notes[:2])), *map(Text, notes[2:])])


def _interval(low: float, high: float) -> str:
    return MISSING if low != low else f"{low:.4g} to {high:.4g}"


def scores_frame(evaluated: Sequence[Evaluated]) -> pd.DataFrame:
    """Return the scores of every predictor in every setting, one line each and one for each group."""
    lines = [
        {"setting": each.name, "predictor": one.name, "held_out": name, **asdict(scores)}
        for each in evaluated
        for one in each.evaluations
        for name, scores in {"": one.overall(), **one.by_fold()}.items()
    ]
    return pd.DataFrame(lines)


def curves_frame(found: Sequence[Curves]) -> pd.DataFrame:
    """Return the scores of every predictor in every setting, one line for each number of rows fitted."""
    lines = [
        {"setting": each.name, "predictor": name, "fitted": count, **asdict(scores)}
        for each in found
        for name, by_count in each.scores.items()
        for count, scores in by_count.items()
    ]
    return pd.DataFrame(lines)


def left_out(counts: Mapping[str, int]) -> str:
    """Return what was left out: ``left out: 12 rows not ok``; empty where nothing was."""
    listed = ", ".join(f"{number_of(count, 'row')} {reason}" for reason, count in counts.items())
    return f"left out: {listed}" if listed else ""


def _column(header: str, texts: Sequence[str], drop: int = 0) -> GridColumn:
    return GridColumn(GridCell(header), [GridCell(text) for text in texts], drop=drop)


def _percent(share: float | None) -> str:
    if share is None:
        return MISSING
    return f"{share:.1%}" if share < 0.1 else f"{share:.0%}"


def _number(value: float | None) -> str:
    return MISSING if value is None else f"{value:.3f}"
