"""Fit a predictor to the rows of each setting, with intervals from rows that were held out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

from dlas.errors import InputError
from dlas.prediction.learning.intervals import half_width
from dlas.prediction.learning.kernel_spread import KernelSpread, PredictedKernels
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
class HeldOut:
    """What a predictor says of rows that it was not fitted to."""

    fold: Fold
    """Its places count in the samples of the setting."""
    predicted: Floats
    """[rows of the fold]."""
    kernels: PredictedKernels | None = None
    """Of predictors of kernels, what they say of each."""
    half_widths: Floats | None = None
    """Of the intervals [rows of the fold], in natural logarithms; None where groups are too few."""


@dataclass(frozen=True)
class Calibration:
    """How wide the intervals of networks are that were never fitted."""

    half_width: float | None = None
    """In natural logarithms, of the network in the middle of those that were held out; None where groups are
    too few.
    """
    spread: KernelSpread | None = None
    """How wide those of other networks are; None where they are as wide."""

    def of(self, kernels: PredictedKernels | None, networks: int) -> Floats | None:
        """Return half of the width of each network's interval; None where groups are too few."""
        if self.half_width is None:
            return None
        return self.half_width * scales_of(self.spread, kernels, networks)


def scales_of(spread: KernelSpread | None, kernels: PredictedKernels | None, networks: int) -> Floats:
    """Return how wide the intervals of networks are relative to that of the one in the middle."""
    return np.ones(networks) if spread is None or kernels is None else spread.scales(kernels)


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
    if (fewer := points.fewer_threads) is not None and predictor.level == "kernel":
        beside = fewer.samples(predictor, target, values_of(fewer, criterion))
        samples = replace(samples, fewer_threads=beside)
    networks = points.frame[NETWORK].tolist()
    parts = list(folds(criterion, groups, seed))
    tried = []
    for fold in parts:
        if criterion.makes_networks:
            check_leaks(fold, samples.ids, networks)
        tried.append(_held_out(predictor, samples, fold, seed, say))
        say(f"{type(predictor).__name__.lower()}: {fold.name}")
    if len(tried) == 1:
        inner = samples.take(parts[0].fitted)
        calibrations = [_from_groups_of(inner, predictor, criterion, seed, say)]
    else:
        others = ([*tried[:place], *tried[place + 1 :]] for place in range(len(tried)))
        calibrations = [calibrated(samples, each) for each in others]
    return samples, [
        replace(each, half_widths=calibration.of(each.kernels, len(each.predicted)))
        for each, calibration in zip(tried, calibrations, strict=True)
    ]


def _held_out(predictor: Predictor, samples: Samples, fold: Fold, seed: int, say: Say) -> HeldOut:
    """Fit without a fold, and predict it."""
    fitted, tried = fit(predictor, samples.take(fold.fitted), seed, say), samples.take(fold.tried)
    return HeldOut(fold, fitted.predict(tried), predicted_kernels(fitted, tried))


def predicted_kernels(fitted: Fitted, samples: Samples) -> PredictedKernels | None:
    """Return what a predictor says of the kernels of samples; None if it reads none."""
    if samples.kernels is None:
        return None
    predicted = fitted.of_kernels(samples.kernels)
    return None if predicted is None else PredictedKernels(samples.kernels, predicted, len(samples))


def calibrated(samples: Samples, tried: Sequence[HeldOut]) -> Calibration:
    """Return how wide the intervals of new groups are, from groups that were held out."""
    if not tried:
        return Calibration()
    places = np.concatenate([each.fold.tried for each in tried])
    predicted, measured = np.concatenate([each.predicted for each in tried]), samples.target[places]
    kernels = [each.kernels for each in tried if each.kernels is not None]
    are_sums = kernels and samples.quantity.startswith("latency")
    spread = KernelSpread.fitted(kernels, np.log(measured / predicted)) if are_sums else None
    scales = np.concatenate([scales_of(spread, each.kernels, len(each.predicted)) for each in tried])
    groups = [samples.groups[place] for place in places]
    return Calibration(half_width(predicted, measured, groups, scales=scales), spread)


def _from_groups_of(
    samples: Samples, predictor: Predictor, criterion: Criterion, seed: int, say: Say
) -> Calibration:
    """Return how wide intervals are from the groups of samples, each held out in turn."""
    if len(set(samples.groups)) < 2:
        return Calibration()
    parts = folds(Criterion(criterion.column), samples.groups, seed)
    return calibrated(samples, [_held_out(predictor, samples, fold, seed, say) for fold in parts])


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
