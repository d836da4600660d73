"""Predict points with a stored predictor, and say where it cannot know."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pandas as pd

from dlas.errors import InputError, listed
from dlas.prediction.learning.intervals import LEVEL
from dlas.prediction.learning.points import SETTING, Points
from dlas.prediction.learning.stored import ANY, SettingRecord, StoredPredictor
from dlas.stack import Samples
from dlas.stack.types import Floats
from dlas.sweep.rows.predictions import UNKNOWN, PredictedPoint, PredictionInterval, bound_names
from dlas.sweep.rows.results import Row

MARGIN = 1e-9
"""Share by which a feature may lie outside the fitted range: rounding."""
MOST_UNKNOWN = 0.1
"""Share of a prediction that may stand for kernels of kinds that were never fitted."""
REFUSED = (
    f"over {MOST_UNKNOWN:.0%} of it are kernels of kinds that were never fitted; asked for anyway, it is "
    "predicted by the values that they move, without an interval"
)
UNKNOWN_FACTOR = 3.0
"""What an unknown kernel may take is this much more or less, which widens intervals."""
LEAST_SHOWN = 0.001
MOST_NAMED = 3
"""Features outside their range that a reason names."""


@dataclass(frozen=True)
class Predictions:
    """What a predictor says of points."""

    target: str
    """The column that it predicts."""
    value: Floats
    low: Floats
    high: Floats
    """Prediction and bounds of its interval, NaN where there is no interval; [n]."""
    in_range: npt.NDArray[np.bool_]
    """Whether all of a point's features, and its batch size, lie in the ranges that were fitted; [n] of bool.
    """
    reasons: list[str]
    """Why a prediction is to be doubted; empty where it is not."""
    refused: list[str]
    """Why a point was not predicted, whose value is then NaN; empty where it was."""
    unknown: Floats
    """Share of each prediction for kernels of kinds that were never fitted; NaN of predictors of networks;
    [n].
    """

    def frame(self, points: Points) -> pd.DataFrame:
        """Return the points' axes with the predictions beside them."""
        frame = points.frame.copy()
        frame[self.target] = self.value
        low, high = bound_names(self.target)
        frame[low], frame[high] = self.low, self.high
        frame[UNKNOWN], frame["in_range"], frame["doubt"] = self.unknown, self.in_range, self.reasons
        return frame


def predict(stored: StoredPredictor, points: Points, anyway: bool = False) -> Predictions:
    """Return the predictions of points.

    Parameters
    ----------
    anyway : bool
        Predict points of a setting that was never fitted with the most similar one that was,
        without an interval.

    Raises
    ------
    InputError
        If a point's machine, compiler, ... was never fitted, and not ``anyway``; it lists the fitted ones.
        If every point is refused.
    """
    total = len(points)
    value, low, high, unknown = np.full((4, total), np.nan)
    in_range, reasons, refused = np.zeros(total, dtype=bool), [""] * total, [""] * total
    found = Predictions(stored.record.target, value, low, high, in_range, reasons, refused, unknown)
    for key, places in points.places().items():
        _fill(found, places, stored, key, points.take(places), anyway)
    if total and all(found.refused):
        share = f"{'at least ' if total > 1 else ''}{np.min(unknown):.0%}"
        raise InputError(f"no point can be predicted: {found.refused[0]}; unknown are {share}")
    return found


def bound(value: Floats, unknown: Floats, half_widths: Floats) -> tuple[Floats, Floats, Floats]:
    """Return what predictions are worth of which a share is for kernels of kinds that were never fitted.

    Parameters
    ----------
    value : array [n]
        What a predictor says.
    unknown : array [n]
        The share.
    half_widths : array [n]
        Half of the width of its intervals, in natural logarithms; NaN where it has none.

    Returns
    -------
    value, low, high : array [n]
        NaN where more than :data:`MOST_UNKNOWN` is unknown; the bounds also without a width.
    """
    known = np.where(unknown > MOST_UNKNOWN, np.nan, value)
    factor = np.exp(half_widths) * (1 + UNKNOWN_FACTOR * unknown)
    return known, known / factor, known * factor


def check_within(stored: StoredPredictor, within: Mapping[str, float], anyway: bool = False) -> None:
    """Refuse bounds for another quantity than the predictor's, and any where it has no intervals.

    Raises
    ------
    InputError
    """
    for name in within:
        if name != stored.record.target:
            raise InputError(f"`within={name}=...`: this predictor predicts {stored.record.target}")
    if within and anyway:
        raise InputError("`within=` needs intervals, and what `anyway=True` predicts has none")
    if within and any(setting.half_width is None for setting in stored.record.settings):
        raise InputError(
            "`within=` needs intervals, and this predictor has none: too few groups were held out when it "
            "was fitted; choose others to hold out, or fit it to more networks"
        )


def bounded(found: Predictions, within: Mapping[str, float]) -> npt.NDArray[np.bool_]:
    """Return for each point whether it was predicted, and its upper bound is at most what is asked."""
    most, told = within.get(found.target), np.array([not reason for reason in found.refused], dtype=bool)
    return told if most is None else told & (found.high <= most)


def as_rows(rows: Sequence[Row], found: Predictions, stored: StoredPredictor) -> list[PredictedPoint]:
    """Return predictions as they are written to a folder.

    Parameters
    ----------
    rows : sequence of Row
        The parts and the device of each point.
    found : Predictions
        Of the same points.
    stored : StoredPredictor
        The predictor.
    """
    points = []
    for place, row in enumerate(rows):
        known = np.isfinite(found.low[place])
        bounds = PredictionInterval(
            value=float(found.value[place]),
            low=float(found.low[place]) if known else None,
            high=float(found.high[place]) if known else None,
            level=LEVEL if known else None,
        )
        told = {found.target: bounds}
        in_range, doubt = bool(found.in_range[place]), found.reasons[place]
        points.append(PredictedPoint(row, told, stored.digest, in_range, doubt))
    return points


def _fill(
    found: Predictions,
    places: npt.NDArray[np.int_],
    stored: StoredPredictor,
    key: tuple[str, ...],
    points: Points,
    anyway: bool,
) -> None:
    """Predict the points of one setting, by the most similar one where it was never fitted.

    Points of which too much is unknown to the predictor are refused, unless ``anyway``.
    """
    covering = stored.covering(key)
    strange, fitted = covering is None, covering or _most_similar(stored, key, points, anyway)
    setting, target = stored.setting(fitted), stored.record.target
    samples = points.samples(stored.part, target, [""] * len(points))
    told, unknown, widths = stored.told(fitted, samples)
    if samples.kernels is not None:
        found.unknown[places] = unknown
    value, low, high = bound(told, unknown, np.full(len(points), np.nan) if strange else widths)
    found.value[places], found.low[places], found.high[places] = told if anyway else value, low, high
    for place in places[np.isnan(value)] if not anyway else ():
        found.refused[place] = REFUSED
    elsewhere = "fitted to another setting" if strange else ""
    guessed = [
        f"{_least(share)} of it are kernels of kinds never fitted" if share else "" for share in unknown
    ]
    doubts = guessed, _doubts(setting, samples, points), _device_doubts(setting, samples, points)
    for place, *reasons in zip(places, *doubts, strict=True):
        found.in_range[place] = not any(reasons)
        found.reasons[place] = "; ".join(filter(None, (elsewhere, *reasons)))


def _least(share: float) -> str:
    """Return a share that is not 0, ``2.3%``, in words where it would be shown as 0."""
    return f"{share:.1%}" if share >= LEAST_SHOWN else f"under {LEAST_SHOWN:.1%}"


def _doubts(setting: SettingRecord, samples: Samples, points: Points) -> list[str]:
    """Return for each point which of its features lie outside the ranges that were fitted."""
    low, high = np.array(list(setting.columns.values())).reshape(-1, 2).T
    slack = MARGIN * np.maximum(np.abs(low), np.abs(high))
    outside = (samples.features < low - slack) | (samples.features > high + slack)
    batches = points.frame["batch"].to_numpy(dtype=int)
    least, most = setting.batches
    reasons = [""] * len(samples)
    for place in np.flatnonzero(outside.any(axis=1) | (batches < least) | (batches > most)):
        named = [samples.columns[column] for column in np.flatnonzero(outside[place])]
        more = f" and {len(named) - MOST_NAMED} more" if len(named) > MOST_NAMED else ""
        batch = int(batches[place])
        doubts = [f"batch {batch} is outside {least} to {most}"] if not least <= batch <= most else []
        if named:
            doubts.append(f"outside the fitted range: {', '.join(named[:MOST_NAMED])}{more}")
        reasons[place] = "; ".join(doubts)
    return reasons


def _device_doubts(setting: SettingRecord, samples: Samples, points: Points) -> list[str]:
    """Return for each point what is unknown of its device, or outside what was fitted.

    Only predictors of kernels read it, and only what differs among the devices that they were fitted to.
    """
    reasons = [""] * len(samples)
    apart = {name: span for name, span in setting.facts.items() if span[0] < span[1]}
    for place, facts in enumerate(points.devices() if apart and samples.kernels is not None else ()):
        unknown = [name for name in apart if name not in facts]
        outside = [name for name, (low, high) in apart.items() if not low <= facts.get(name, low) <= high]
        reasons[place] = "; ".join(
            f"{what} of its device: {', '.join(names)}"
            for what, names in (("unknown", unknown), ("outside the fitted range", outside))
            if names
        )
    return reasons


def _most_similar(
    stored: StoredPredictor, key: tuple[str, ...], points: Points, anyway: bool
) -> tuple[str, ...]:
    """Return the fitted setting that agrees most with one that was never fitted.

    Raises
    ------
    InputError
        If not ``anyway``.
    """

    def agreeing(fitted: tuple[str, ...]) -> int:
        return sum(own in (value, ANY) for own, value in zip(fitted, key, strict=True))

    best = max(stored.fitted, key=agreeing)
    if not anyway:
        raise InputError(
            f"{_difference(stored, best, key, points)}; `anyway=True` predicts without an interval"
        )
    return best


def _difference(
    stored: StoredPredictor, fitted: tuple[str, ...], key: tuple[str, ...], points: Points
) -> str:
    """Return which values of a setting were never fitted, beside those that were."""
    names: Mapping[str, str] = {
        **{setting.setting["machine_id"]: setting.machine for setting in stored.record.settings},
        **dict(zip(points.frame["machine_id"], points.frame["machine"].astype(str), strict=True)),
    }
    clauses = []
    for place, column in enumerate(SETTING):
        if fitted[place] in (key[place], ANY):
            continue
        seen = sorted({names.get(known[place], known[place]) for known in stored.fitted})
        what = column.removesuffix("_id")
        clauses.append(
            f"{what} {names.get(key[place], key[place])!r} was never fitted (fitted: {listed(seen)})"
        )
    return "; ".join(clauses)
