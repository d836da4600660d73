"""What is said while a predictor for a device is made, and the table of the networks that it never saw."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import numpy.typing as npt
import pandas as pd
from rich.console import Group, RenderableType
from rich.text import Text

from dlas.face.console.cells import GridCell, GridColumn, names
from dlas.face.console.grid import Grid
from dlas.prediction.learning.intervals import LEVEL
from dlas.prediction.learning.metrics import Scores
from dlas.prediction.learning.points import Points
from dlas.prediction.learning.spending import FIRST
from dlas.sweep.rows.labels import MISSING, duration, points, shortened, shown_in
from dlas.sweep.rows.predictions import MEASURED, bound_names

Array = npt.NDArray[np.float64]
COVERED = "covered"
"""Column that says whether the interval of a prediction covers what was measured."""
ERROR = "error"
"""Column of the prediction over what was measured, less 1."""


def as_drawn(count: int) -> str:
    """Return the line before points that are measured as they are drawn."""
    return f"measuring {points(count)} as they are drawn"


def standing(
    number: int, read: Points, known: int, error: float, floor: float | None, left_s: float, reason: str
) -> str:
    """Return the line that says how far a predictor is.

    Parameters
    ----------
    number : int
        Of the round.
    read : Points
        All measurements, with what was left out.
    known : int
        Different points among them.
    error : float
        On the networks that were measured as they were drawn, while they are held out.
    floor : float or None
        The noise floor.
    left_s : float
        Seconds that are left of the minutes.
    reason : str
        Why no more are measured; empty where more are.
    """
    without = ", ".join(f"{count} {why}" for why, count in read.left_out.items())
    pieces = [
        f"round {number}: {points(known)}" + (f" (left out: {without})" if without else ""),
        f"{error:.1%} off on the first {FIRST} networks while they are held out",
        *([f"noise floor {floor:.1%}"] if floor is not None else []),
        f"{duration(max(0, round(left_s)))} left",
    ]
    return ", ".join(pieces) + (f"; no more points: {reason}" if reason else "")


def chosen(disagreement: Array, others: Array, seconds: Array) -> str:
    """Return the line that says which candidates are measured next.

    Parameters
    ----------
    disagreement : array [chosen]
        Of the committee on those that are.
    others : array [others]
        On those that are not.
    seconds : array [chosen]
        How long they are expected to take.
    """
    apart = f", on the others by {others.mean():.1%}" if len(others) else ""
    return (
        f"  next: {len(disagreement)} of {len(disagreement) + len(others)} candidates, on which predictors "
        f"disagree most for the seconds that they take: by {disagreement.mean():.1%}{apart}; "
        f"about {duration(float(seconds.mean()))} each"
    )


def none_left(count: int, unplanned: Mapping[str, int]) -> str:
    """Return the line that says why there is nothing more to measure.

    Parameters
    ----------
    count : int
        Points that were drawn and have no row; the kernels of none of them are known.
    unplanned : mapping of str to int
        Numbers of points whose kernels are not known, by reason.
    """
    if not count:
        return "no more points: no others can be drawn"
    reasons = "; ".join(f"{points(number)}: {reason}" for reason, number in unplanned.items())
    return f"no more points: the kernels of {points(count)} cannot be told ({reasons})"


def held_out(scores: Scores) -> str:
    """Return the line that says how wrong the predictor is on the networks that were held out of fits."""
    covered = "" if scores.coverage is None else f", {scores.coverage:.0%} within their {LEVEL:.0%} interval"
    return f"  {scores.mape:.1%} off on networks held out{covered}"


def compared(frame: pd.DataFrame, measured: Mapping[str, float], target: str) -> pd.DataFrame:
    """Return predictions with what was measured beside them.

    Parameters
    ----------
    frame : DataFrame
        Points with predictions, as ``dlas.prediction.learning.predictions.Predictions.frame`` returns them.
    measured : mapping of str to float
        By id; a point that failed is missing.
    target : str
    """
    low, high = (frame[name] for name in bound_names(target))
    found = frame["id"].map(measured).astype("float64")
    kept = frame[["id", "model", "batch", target, *bound_names(target), "doubt"]]
    return kept.assign(
        **{
            MEASURED: found,
            ERROR: frame[target] / found - 1,
            COVERED: ((low <= found) & (found <= high)).where(found.notna() & low.notna()).astype("boolean"),
        }
    )


def none_seen(failed: Mapping[str, int]) -> RenderableType:
    """Return what stands for the table of networks never seen where none can be predicted."""
    return Group(
        Text("no network that it never saw can be predicted"),
        *(Text(f"missing: {points(count)}: {reason}") for reason, count in failed.items()),
    )


def never_seen(
    frame: pd.DataFrame, target: str, floor: float | None, failed: Mapping[str, int]
) -> RenderableType:
    """Return the table of networks that a predictor never saw.

    Parameters
    ----------
    frame : DataFrame
        What :func:`compared` returned.
    target : str
    floor : float or None
        The noise floor.
    failed : mapping of str to int
        Numbers of points without a prediction or a measurement, by reason.
    """
    words, unit, scale = shown_in(target)
    low, high = (frame[name] for name in bound_names(target))
    columns = [
        names("network", [str(name) for name in frame["model"]]),
        _column("batch", [str(batch) for batch in frame["batch"]]),
        _column(f"predicted, {unit}", [_number(scale * value) for value in frame[target]]),
        _column(f"{LEVEL:.0%} interval", list(map(_interval, scale * low, scale * high))),
        _column(f"measured, {unit}", [_number(scale * value) for value in frame[MEASURED]]),
        _column("error", [_signed(value) for value in frame[ERROR]]),
        _column(COVERED, frame[COVERED].map({True: "yes", False: "no"}).fillna(MISSING).tolist()),
        _column("doubt", [shortened(text, 60) or MISSING for text in frame["doubt"]], drop=1),
    ]
    title = Text(f"{words} of networks that it never saw", style="bold")
    return Grid(columns, above=[title], below=[Text(line) for line in _notes(frame, floor, failed)])


def _notes(frame: pd.DataFrame, floor: float | None, failed: Mapping[str, int]) -> list[str]:
    """Return what the table amounts to."""
    errors, covered = frame[ERROR].dropna().abs(), frame[COVERED].dropna()
    pieces = [f"mean error {errors.mean():.1%} of {points(len(errors))}"] if len(errors) else []
    pieces += [f"{covered.mean():.0%} within their {LEVEL:.0%} interval"] if len(covered) else []
    pieces.append("noise floor " + ("unknown" if floor is None else f"{floor:.1%}"))
    return ["; ".join(pieces), *(f"missing: {points(count)}: {reason}" for reason, count in failed.items())]


def _interval(low: float, high: float) -> str:
    return MISSING if np.isnan(low) else f"{low:.4g} to {high:.4g}"


def _number(value: float) -> str:
    return MISSING if np.isnan(value) else f"{value:.4g}"


def _signed(share: float) -> str:
    return MISSING if np.isnan(share) else f"{share:+.1%}"


def _column(header: str, texts: Sequence[str], drop: int = 0) -> GridColumn:
    return GridColumn(GridCell(header), [GridCell(text) for text in texts], drop=drop)
