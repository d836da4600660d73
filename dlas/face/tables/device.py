"""The networks that a predictor for a device never saw: what it says of them, and what was measured."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pandas as pd
from rich.console import Group, RenderableType
from rich.text import Text

from dlas.errors import InputError
from dlas.face.tables.columns import between, digits, names, numbers, signed, table_of, with_unit
from dlas.face.tables.text import Grid, titled
from dlas.face.tables.view import View
from dlas.prediction.adaptive.device.record import UNSEEN
from dlas.prediction.adaptive.device.strategy import DeviceStrategy
from dlas.prediction.learning.intervals import LEVEL
from dlas.prediction.learning.noise import noise_floor
from dlas.prediction.learning.points import read_points
from dlas.prediction.learning.predictions import predict
from dlas.prediction.learning.stored import StoredPredictor
from dlas.sweep.rows.files import holds_rows
from dlas.sweep.rows.labels import MISSING, points, shortened, shown_in
from dlas.sweep.rows.predictions import MEASURED, bound_names

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


def never_seen(frame: pd.DataFrame, target: str, floor: float | None, failed: Mapping[str, int]) -> Grid:
    """Return the table of networks that a predictor never saw.

    Parameters
    ----------
    frame : DataFrame
        What :func:`compared` returned.
    floor : float or None
        The noise floor.
    failed : mapping of str to int
        Numbers of points without a prediction or a measurement, by reason.
    """
    words, unit, scale = shown_in(target)
    low, high = (frame[name] for name in bound_names(target))
    strips = [
        names("network", map(str, frame["model"])),
        numbers("batch", map(str, frame["batch"])),
        numbers(with_unit("predicted", unit), map(digits, scale * frame[target])),
        numbers(f"{LEVEL:.0%} interval", map(between, scale * low, scale * high)),
        numbers(with_unit("measured", unit), map(digits, scale * frame[MEASURED])),
        numbers("error", map(signed, frame[ERROR])),
        numbers(COVERED, frame[COVERED].map({True: "yes", False: "no"}).fillna(MISSING)),
        numbers("doubt", [shortened(text, 60) or MISSING for text in frame["doubt"]], drop=1),
    ]
    title = f"{words} of networks that it never saw"
    return titled(table_of(strips, "never-seen", title), *map(Text, _notes(frame, floor, failed)))


def _notes(frame: pd.DataFrame, floor: float | None, failed: Mapping[str, int]) -> list[str]:
    """Return what the table amounts to."""
    pieces = [*_errors(frame), "noise floor " + ("unknown" if floor is None else f"{floor:.1%}")]
    return ["; ".join(pieces), *(f"missing: {points(count)}: {reason}" for reason, count in failed.items())]


def _errors(frame: pd.DataFrame) -> list[str]:
    """Return how wrong predictions are in the mean, and how many are within their intervals."""
    errors, covered = frame[ERROR].dropna().abs(), frame[COVERED].dropna()
    pieces = [f"mean error {errors.mean():.1%} of {points(len(errors))}"] if len(errors) else []
    return pieces + ([f"{covered.mean():.0%} within their {LEVEL:.0%} interval"] if len(covered) else [])


def never_seen_in_short(folder: Path, known: StoredPredictor) -> str | None:
    """Return how wrong a predictor is on the networks in its folder that it never saw; None without any."""
    if not holds_rows(folder / UNSEEN):
        return None
    target = known.record.target
    try:
        measured = read_points([folder / UNSEEN], target, kernels=known.part.level == "kernel")
    except InputError as error:
        return str(error)
    found = predict(known, measured, anyway=True).frame(measured)
    times = dict(zip(measured.frame["id"], measured.frame[target], strict=True))
    frame = compared(found, times, target)
    worst = frame.iloc[int(frame[ERROR].abs().argmax())]
    return "; ".join([*_errors(frame), f"the most wrong is {worst['model']}, {signed(float(worst[ERROR]))}"])
