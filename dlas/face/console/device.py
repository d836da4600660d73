"""The table of the networks that a predictor for a device never saw."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import numpy.typing as npt
import pandas as pd
from rich.console import Group, RenderableType
from rich.text import Text

from dlas.face.console.cells import GridCell, GridColumn, names
from dlas.face.console.grid import Grid
from dlas.face.console.views import View
from dlas.prediction.adaptive.device.strategy import DeviceStrategy
from dlas.prediction.learning.intervals import LEVEL
from dlas.prediction.learning.noise import noise_floor
from dlas.sweep.rows.labels import MISSING, points, shortened, shown_in
from dlas.sweep.rows.predictions import MEASURED, bound_names

Array = npt.NDArray[np.float64]
COVERED = "covered"
"""Column that says whether the interval of a prediction covers what was measured."""
ERROR = "error"
"""Column of the prediction over what was measured, less 1."""


def of_networks_never_seen(strategy: DeviceStrategy) -> View:
    """Return what a predictor tells of networks that it never saw, beside what was measured."""
    frame, target = strategy.predicted, strategy.asked.target
    if frame.empty:
        return View(frame, none_seen(strategy.failed))
    frame = compared(frame, strategy.measured(), target)
    floor = noise_floor(strategy.points().frame, target)
    return View(frame, never_seen(frame, target, floor, strategy.failed))


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
