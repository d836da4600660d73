"""Tables of predictors: how wrong they are on what was held out, and what they predict."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict

import pandas as pd
from rich.console import Group, RenderableType
from rich.text import Text

from dlas.face.tables.columns import (
    between,
    digits,
    names,
    numbers,
    percent,
    signed,
    table_of,
    with_unit,
)
from dlas.face.tables.scores import by_fold, floor_in_words, overall
from dlas.face.tables.table import Table
from dlas.face.tables.text import Grid, titled
from dlas.prediction.learning.curves import Curves
from dlas.prediction.learning.evaluation import CLOSE, KernelScores
from dlas.prediction.learning.gains import Range, TransferGain
from dlas.prediction.learning.intervals import LEVEL, fewest_groups
from dlas.prediction.learning.metrics import WITHIN
from dlas.prediction.learning.settings import SettingEvaluation
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


def evaluation(setting: SettingEvaluation, target: str, hold_out: str) -> RenderableType:
    """Return the table of predictors on the groups that were held out in one setting."""
    evaluations = setting.evaluations.items()
    scores = {name: each.overall() for name, each in evaluations}
    title = f"{target} on what was held out ({hold_out}): {setting.name}"
    shown: list[RenderableType] = [titled(overall(scores, caption=title))]
    if 1 < len(setting.first.tried) <= MOST_FOLDS:
        folds = {name: each.by_fold() for name, each in evaluations}
        shown.append(titled(by_fold(folds, caption="mean error by what was held out")))
    for name, each in evaluations:
        if kernels := each.by_kernel():
            shown.append(titled(_by_kernel(name, kernels)))
    return Group(*shown, *(Text(note, style="dim") for note in _notes(setting)))


def _by_kernel(predictor: str, kernels: Sequence[KernelScores]) -> Table:
    """Return the errors of a predictor by kind of kernel."""
    return table_of(
        [
            names("kernels", [each.kind for each in kernels]),
            numbers("number", [f"{each.count:,}" for each in kernels]),
            numbers("share of time", [percent(each.share) for each in kernels]),
            numbers("mean error", [percent(each.mape) for each in kernels]),
            numbers(f"within {CLOSE:.0%}", [f"{each.within:.0%}" for each in kernels]),
        ],
        "kernels",
        f"{predictor}: kernels of what was held out",
    )


def curves(found: Curves, target: str, hold_out: str) -> Grid:
    """Return the table of errors by the number of rows that predictors are fitted to, in one setting."""
    counts = sorted({count for scores in found.scores.values() for count in scores})
    strips = [names("predictor", found.scores)]
    for count in counts:
        errors = [scores[count].rmse_of_mean if count in scores else None for scores in found.scores.values()]
        strips.append(numbers(number_of(count, "row"), map(percent, errors)))
    title = f"RMSE / mean of {target} by rows fitted, on what was held out ({hold_out}): {found.name}"
    return titled(table_of(strips, "curves", title), Text(floor_in_words(found.floor), style="dim"))


def gained(predictor: str, hold_out: str, gains: Sequence[TransferGain]) -> Grid:
    """Return the table of what fitting to several devices gains over one, by model.

    Parameters
    ----------
    hold_out : str
        What makes a device: ``instance``.
    gains : sequence of TransferGain
        At least one.
    """
    within = [
        numbers(f"within {limit:.0%}", [_least_most(each.within[at]) for each in gains])
        for at, limit in enumerate(WITHIN[:GAINS])
    ]
    strips = [
        names("model", [each.name for each in gains]),
        numbers("comparisons", [f"{each.comparisons:,}" for each in gains]),
        *within,
        numbers("RMSE", [_least_most(each.rmse) for each in gains]),
        numbers("MAE", [_least_most(each.mae) for each in gains]),
    ]
    title = f"{predictor}: gain by fitting to all other values of {hold_out} in place of one (least to most)"
    return titled(table_of(strips, "gains", title))


def _least_most(span: Range) -> str:
    """Return the least and the most of shares, ``-1.2% to +8.9%``."""
    return MISSING if span is None else f"{span[0]:+.1%} to {span[1]:+.1%}"


def _notes(setting: SettingEvaluation) -> list[str]:
    """Return what is to be known beside the scores of the first predictor."""
    notes, first = [floor_in_words(setting.floor)], setting.first
    if first.overall().coverage is None:
        notes.append(f"no interval: one of {LEVEL:.0%} takes at least {fewest_groups(LEVEL)} other groups")
    else:
        notes.append(
            f"covered: rows within their {LEVEL:.0%} interval, with the standard error over groups; "
            "width: its upper over its lower bound, less 1"
        )
    worst = ", ".join(f"{row} by {abs(guess / known - 1):.0%}" for row, guess, known in first.worst(WORST))
    notes.append(f"largest errors of {next(iter(setting.evaluations))}: {worst}")
    return notes


def predicted(frame: pd.DataFrame, target: str, total: int, failed: Mapping[str, int]) -> Grid:
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
    strips = [names(axis, map(str, lines[axis]), shared=True) for axis in axes]
    strips.append(numbers(with_unit(words, unit), map(digits, scale * lines[target])))
    if MEASURED in lines:
        strips.append(numbers(MEASURED, map(digits, scale * lines[MEASURED])))
        strips.append(numbers("error", map(signed, lines[target] / lines[MEASURED] - 1)))
    intervals = map(between, scale * lines[low], scale * lines[high])
    strips.append(numbers(f"{LEVEL:.0%} interval", intervals))
    if lines[UNKNOWN].notna().any():
        strips.append(numbers("unknown kernels", map(percent, lines[UNKNOWN])))
    strips.append(numbers("doubt", [shortened(text, 60) or MISSING for text in lines["doubt"]], drop=1))
    notes = [f"{points(len(frame))} of {points(total)} that were predicted"]
    if len(frame) > len(lines):
        notes.append(f"the {len(lines):,} smallest are shown")
    notes += [f"not predicted: {points(count)}: {reason}" for reason, count in failed.items()]
    below = [Text("; ".join(notes[:2])), *map(Text, notes[2:])]
    return Grid(table_of(strips, "predicted"), below=below)


def scores_frame(evaluated: Sequence[SettingEvaluation]) -> pd.DataFrame:
    """Return the scores of every predictor in every setting, one line each and one for each group."""
    lines = [
        {"setting": each.name, "predictor": predictor, "held_out": name, **asdict(scores)}
        for each in evaluated
        for predictor, one in each.evaluations.items()
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
