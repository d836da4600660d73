"""What fitting to several devices gains over fitting to one of them.

Machines of one model differ, so that what was fitted to one of them errs on another.

References
----------
MIRAGE, section 6.4 and Table 8.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from dlas.prediction.learning.fitting import HeldOut, fit
from dlas.prediction.learning.metrics import WITHIN, Scores, score
from dlas.stack import Predictor, Samples
from dlas.stack.types import Floats, Say

FEWEST = 3
"""Devices of which one can be held out, so that several are left to fit to."""
MEAN = "mean"
Range = tuple[float, float] | None
"""Least and most, as shares; None where nothing could be compared."""


@dataclass(frozen=True)
class TransferGain:
    """By how much predictions of a network improve with several devices, relative to those from one.

    Each device that was held out is compared with each of the others as the only one to be fitted to.
    """

    name: str
    """Of the model, or :data:`MEAN` for the mean over all models."""
    comparisons: int
    within: tuple[Range, ...]
    """Of the shares of predictions whose relative error is at most each of
    :data:`dlas.prediction.learning.metrics.WITHIN`: how many more there are.
    """
    rmse: Range
    mae: Range
    """By how much the errors are smaller."""


def gains(
    predictor: Predictor,
    samples: Samples,
    models: Sequence[str],
    tried: Sequence[HeldOut],
    seed: int,
    say: Say,
) -> list[TransferGain]:
    """Return what fitting to all other devices gains, by model and in the mean.

    Parameters
    ----------
    samples : Samples
        The rows of all devices, each device a group.
    models : sequence of str
        Of each row.
    tried : sequence of HeldOut
        What was predicted of each device while it was held out, a fold each.

    Returns
    -------
    list of TransferGain
        Empty where devices are fewer than :data:`FEWEST`, or no one has enough rows to be fitted to alone.
    """
    if len(tried) < FEWEST:
        return []
    single = dict(_alone(predictor, samples, tried, seed, say))
    names, of_model = sorted(set(models)), np.asarray(models)
    found = [
        _gain(name, list(_compared(samples, tried, single, of_model == name)))
        for name in (names if single else ())
    ]
    found = [gain for gain in found if gain.comparisons]
    return [*found, _mean(found)] if found else []


def _alone(
    predictor: Predictor, samples: Samples, tried: Sequence[HeldOut], seed: int, say: Say
) -> Iterator[tuple[int, Floats]]:
    """Yield the place of each device with enough rows, and what is predicted of all rows from it alone."""
    for place, each in enumerate(tried):
        if len(each.fold.tried) >= predictor.fewest:
            say(f"{type(predictor).__name__.lower()}: {each.fold.name} alone")
            yield place, fit(predictor, samples.take(each.fold.tried), seed, say).predict(samples)


def _compared(
    samples: Samples,
    tried: Sequence[HeldOut],
    single: dict[int, Floats],
    chosen: npt.NDArray[np.bool_],
) -> Iterator[tuple[Scores, Scores]]:
    """Yield the scores from several devices and from one, of chosen rows of a device that neither has."""
    for place, each in enumerate(tried):
        own = chosen[each.fold.tried]
        if not own.any():
            continue
        rows = each.fold.tried[own]
        several = score(each.predicted[own], samples.target[rows])
        for other, predicted in single.items():
            if other != place:
                yield several, score(predicted[rows], samples.target[rows])


def _gain(name: str, pairs: Sequence[tuple[Scores, Scores]]) -> TransferGain:
    return TransferGain(
        name=name,
        comparisons=len(pairs),
        within=tuple(
            _range([_more(several.within[place], one.within[place]) for several, one in pairs])
            for place in range(len(WITHIN))
        ),
        rmse=_range([-_more(several.rmse, one.rmse) for several, one in pairs]),
        mae=_range([-_more(several.mae, one.mae) for several, one in pairs]),
    )


def _more(value: float, before: float) -> float:
    """Return by which share a value is larger than another; not a number where that one is 0."""
    return value / before - 1 if before > 0 else math.nan


def _range(values: Sequence[float]) -> Range:
    known = [value for value in values if not math.isnan(value)]
    return (min(known), max(known)) if known else None


def _mean(gains: Sequence[TransferGain]) -> TransferGain:
    """Return the mean of the least and of the most over all models."""
    return TransferGain(
        name=MEAN,
        comparisons=sum(gain.comparisons for gain in gains),
        within=tuple(_mean_range([gain.within[place] for gain in gains]) for place in range(len(WITHIN))),
        rmse=_mean_range([gain.rmse for gain in gains]),
        mae=_mean_range([gain.mae for gain in gains]),
    )


def _mean_range(ranges: Sequence[Range]) -> Range:
    known = [each for each in ranges if each is not None]
    if not known:
        return None
    least, most = np.mean(known, axis=0)
    return float(least), float(most)
