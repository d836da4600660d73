"""How wrong predictors are on what was held out."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from dlas.face.tables.columns import maybe, names, numbers, percent, table_of
from dlas.face.tables.table import Cell, Table

if TYPE_CHECKING:
    from dlas.prediction.learning.metrics import Scores
    from dlas.prediction.learning.stored import ScoreRecord


def overall(scores: Mapping[str, Scores | ScoreRecord], name: str = "scores", caption: str = "") -> Table:
    """Return how wrong predictors are, a line each.

    Parameters
    ----------
    scores : mapping of str to Scores
        By predictor.
    name, caption : str
        Of the table.
    """
    # Its module imports SciPy, which takes most of a second; reports without predictors do not need it.
    from dlas.prediction.learning.metrics import WITHIN

    rows = list(scores.values())
    within = [
        numbers(f"within {limit:.0%}", [f"{row.within[at]:.0%}" for row in rows], drop=4 - at)
        for at, limit in enumerate(WITHIN)
    ]
    return table_of(
        [
            names("predictor", scores),
            numbers("rows", [str(row.rows) for row in rows]),
            numbers("mean error", [percent(row.mape) for row in rows]),
            *within,
            numbers("RMSE / mean", [percent(row.rmse_of_mean) for row in rows]),
            numbers("Spearman", [maybe(row.spearman, "{:.3f}".format) for row in rows]),
            numbers("Kendall", [maybe(row.kendall, "{:.3f}".format) for row in rows], drop=5),
            numbers("covered", [_covered(row) for row in rows]),
            numbers("width", [percent(row.width) for row in rows]),
        ],
        name,
        caption,
    )


def by_fold(
    folds: Mapping[str, Mapping[str, Scores | ScoreRecord]], name: str = "errors", caption: str = ""
) -> Table:
    """Return the mean error of predictors by what was held out, the least of each line marked.

    Parameters
    ----------
    folds : mapping of str to mapping of str to Scores
        By predictor, and by what was held out, the same for all.
    name, caption : str
        Of the table.
    """
    first = next(iter(folds.values()))
    least = {group: min(scores[group].mape for scores in folds.values()) for group in first}
    strips = [names("held out", first), numbers("rows", [str(scores.rows) for scores in first.values()])]
    for predictor, by_group in folds.items():
        errors = {group: by_group[group].mape for group in first}
        cells = [
            Cell(percent(error), style="best" if error == least[group] else "")
            for group, error in errors.items()
        ]
        strips.append(numbers(predictor, cells))
    return table_of(strips, name, caption)


def floor_in_words(floor: float | None) -> str:
    """Return what is known of the noise floor."""
    if floor is None:
        return "noise floor: no point was measured twice (in two folders), so nobody knows it"
    return f"noise floor: {percent(floor)}, the mean error of one measurement"


def _covered(scores: Scores | ScoreRecord) -> str:
    """Return the share of rows in their intervals, with its standard error where there is one."""
    error = "" if scores.coverage_error is None else f" ± {percent(scores.coverage_error)}"
    return percent(scores.coverage) + error
