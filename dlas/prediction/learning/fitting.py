"""Fit a predictor to the rows of each setting, with intervals from rows that were held out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import numpy.typing as npt

from dlas.errors import InputError
from dlas.prediction.learning.intervals import half_width
from dlas.prediction.learning.points import NETWORK, Points, describe_left_out
from dlas.prediction.learning.splits import DEVICE, OF_SETTING, Criterion, Fold, check_leaks, folds
from dlas.stack import Fitted, Predictor, Samples, Workspace
from dlas.stack.types import Floats, Say
from dlas.sweep.rows.labels import number_of

MOST_IN_TURN = 100
"""Groups that are held out one by one where nobody says what to hold out."""
PARTS = 10
"""Into how many parts more of them are drawn."""


@dataclass(frozen=True)
class KernelTimes:
    """What a predictor says of kernels that it was not fitted to, beside what was measured."""

    kinds: npt.NDArray[np.str_]
    """[n] of str."""
    predicted: Floats
    measured: Floats
    """[n], s."""


@dataclass(frozen=True)
class HeldOut:
    """What a predictor says of rows that it was not fitted to."""

    fold: Fold
    """Its places count in the samples of the setting."""
    predicted: Floats
    """[rows of the fold]."""
    half_width: float | None
    """Of the intervals, in natural logarithms; None where groups are too few."""
    kernels: KernelTimes | None = None
    """Of predictors of kernels, what they say of each."""


def values_of(points: Points, criterion: Criterion) -> list[str]:
    """Return the value of a criterion's column in each point.

    The level of a network that was not compressed is 0; a device is called by what tells it from the others.

    Raises
    ------
    InputError
        If there is no such column, or a point has no value in it.
    """
    if criterion.column == DEVICE:
        return _devices(points)
    if criterion.column not in points.frame:
        raise InputError(
            f"`hold_out={criterion.column!r}` is no column; there are: {', '.join(map(str, points.frame))}"
        )
    column = points.frame[criterion.column]
    if criterion.column.startswith("compression."):
        column = column.where(~points.frame["compression"].eq("none"), 0)
    if column.isna().any():
        row = points.frame["id"][column.isna()].iloc[0]
        raise InputError(f"`hold_out={criterion.column!r}`: row {row} has no value in this column")
    return [format(value, "g") if isinstance(value, float) else str(value) for value in column]


def _devices(points: Points) -> list[str]:
    """Return the name of each point's device: ``onnxruntime/2`` where compilers and threads vary."""
    columns = [points.frame[name].astype("string").fillna("") for name in OF_SETTING[DEVICE]]
    varying = [column for column in columns if column.nunique() > 1]
    names = ["/".join(filter(None, values)) for values in zip(*varying, strict=True)]
    return names or ["all"] * len(points)


def quiet(line: str) -> None:
    """Say nothing of fits, where there are many."""


def fit(predictor: Predictor, samples: Samples, seed: int = 0, say: Say = print) -> Fitted:
    """Return a predictor fitted to samples.

    Raises
    ------
    InputError
        If there are fewer than the predictor takes.
    """
    if len(samples) < predictor.fewest:
        raise InputError(
            f"{number_of(len(samples), 'usable row')} to fit on; "
            f"{type(predictor).__name__} takes at least {predictor.fewest}"
        )
    with TemporaryDirectory(prefix="dlas-fit-") as folder:
        return predictor.fit(samples, Workspace(seed, Path(folder), say))


def cross_fit(
    predictor: Predictor, points: Points, target: str, criterion: Criterion, seed: int = 0, say: Say = print
) -> tuple[Samples, list[HeldOut]]:
    """Fit without each fold, and predict it.

    The intervals of a fold come from the groups of the other folds, each predicted by the
    predictor that was fitted without it; of a single fold, from the groups of the rows that it was
    fitted to, held out in turn among them.

    Parameters
    ----------
    points : Points
        Of one setting.
    say : callable
        Takes a line of progress.

    Raises
    ------
    InputError
        If nothing can be held out, a network would be on both sides, or the rows are too few.
    """
    groups = values_of(points, criterion)
    samples = points.samples(predictor, target, groups)
    networks = points.frame[NETWORK].tolist()
    parts = list(folds(criterion, groups, seed))
    predicted, kernels = [], []
    for fold in parts:
        if criterion.makes_networks:
            check_leaks(fold, samples.ids, networks)
        fitted, tried = fit(predictor, samples.take(fold.fitted), seed, say), samples.take(fold.tried)
        predicted.append(fitted.predict(tried))
        kernels.append(_kernel_times(fitted, tried))
        say(f"{type(predictor).__name__.lower()}: {fold.name}")
    if len(parts) == 1:
        widths = [_inner_width(predictor, samples.take(parts[0].fitted), criterion, seed, say)]
    else:
        widths = [_outer_width(samples, parts, predicted, place) for place in range(len(parts))]
    return samples, [HeldOut(*each) for each in zip(parts, predicted, widths, kernels, strict=True)]


def _kernel_times(fitted: Fitted, tried: Samples) -> KernelTimes | None:
    """Return what a predictor says of the kernels that were timed; None if it does not read kernels."""
    if tried.kernels is None:
        return None
    timed = tried.kernels.take(tried.kernels.seconds > 0)
    predicted = fitted.of_kernels(timed)
    return None if predicted is None else KernelTimes(timed.kinds, predicted, timed.seconds)


def calibrated(samples: Samples, tried: Sequence[HeldOut]) -> float | None:
    """Return half of the width of the intervals of new groups, from all groups that were held out."""
    return _outer_width(samples, [each.fold for each in tried], [each.predicted for each in tried], None)


def _outer_width(
    samples: Samples, parts: Sequence[Fold], predicted: Sequence[Floats], without: int | None
) -> float | None:
    """Return half of the interval's width from the errors in all folds but one."""
    chosen = [place for place in range(len(parts)) if place != without]
    if not chosen:
        return None
    places = np.concatenate([parts[place].tried for place in chosen])
    groups = [samples.groups[place] for place in places]
    return half_width(np.concatenate([predicted[place] for place in chosen]), samples.target[places], groups)


def _inner_width(
    predictor: Predictor, samples: Samples, criterion: Criterion, seed: int, say: Say
) -> float | None:
    """Return half of the interval's width from groups of these samples, each held out in turn."""
    if len(set(samples.groups)) < 2:
        return None
    parts = list(folds(Criterion(criterion.column), samples.groups, seed))
    predicted = [
        fit(predictor, samples.take(part.fitted), seed, say).predict(samples.take(part.tried))
        for part in parts
    ]
    return _outer_width(samples, parts, predicted, None)


def check_enough(points: Points, fewest: int) -> None:
    """Refuse fewer rows than a predictor takes.

    Raises
    ------
    InputError
        It says what was left out, and why.
    """
    if len(points) < fewest:
        raise InputError(
            f"{number_of(len(points), 'usable row')}, and at least {fewest} are needed; "
            f"{describe_left_out(points)}"
        )


def criterion_of(text: str | None, points: Points) -> Criterion:
    """Return what is held out: what a text says, or what is usual for these points.

    That is models if there are three, else levels of compression, else batch sizes, else networks; of very
    many in ten parts.
    """
    if text is not None:
        return Criterion.parse(text)
    fewest = {"model": 3, "compression.level": 2, "batch": 2}
    several = (name for name, few in fewest.items() if name in points.frame and _count(points, name) >= few)
    column = next(several, NETWORK)
    return Criterion(column, parts=PARTS if _count(points, column) > MOST_IN_TURN else None)


def _count(points: Points, column: str) -> int:
    return int(points.frame[column].nunique())
