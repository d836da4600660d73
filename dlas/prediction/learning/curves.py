"""How the error of predictors falls with the number of rows that they are fitted to.

References
----------
The OFA latency predictor, Figures 4 (b) and 5 (b): the elbow is where more rows begin to gain little.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from dlas.errors import InputError
from dlas.prediction.learning.fitting import fit, values_of
from dlas.prediction.learning.metrics import Scores, score
from dlas.prediction.learning.noise import noise_floor
from dlas.prediction.learning.points import NETWORK, Points
from dlas.prediction.learning.settings import EvaluationProtocol, describe
from dlas.prediction.learning.splits import Fold, check_leaks, folds
from dlas.stack import Predictor, Samples
from dlas.stack.types import Say
from dlas.sweep.rows.labels import number_of


@dataclass(frozen=True)
class Curves:
    """How wrong predictors are that were fitted to a part of the rows of one setting."""

    name: str
    """Machine, compiler, ... of the rows."""
    scores: dict[str, dict[int, Scores]]
    """By predictor, and by the number of rows; without numbers that the predictor or the rows do not allow.
    """
    floor: float | None
    """The noise floor."""


def curves_of_settings(
    predictors: Mapping[str, Predictor],
    points: Points,
    protocol: EvaluationProtocol,
    counts: Sequence[int],
    say: Say = print,
) -> list[Curves]:
    """Return the learning curves of predictors in each setting that has enough rows.

    Raises
    ------
    InputError
        If no setting has enough rows for any of the numbers, nothing can be held out, or a network would be
        on both sides.
    """
    target, criterion, seed = protocol.target, protocol.criterion, protocol.seed
    found, left = [], 0
    for measured in points.settings(criterion.of_settings).values():
        own, name = measured.merged(target), describe(measured, criterion.of_settings)
        groups = values_of(own, criterion)
        if len(set(groups)) < 2:
            say(f"{name}: one value of {criterion.column}, which cannot be held out")
            continue
        parts = list(folds(criterion, groups, seed))
        most = min(len(fold.fitted) for fold in parts)
        left = max(left, most)
        if criterion.makes_networks:
            for fold in parts:
                check_leaks(fold, own.frame["id"].tolist(), own.frame[NETWORK].tolist())
        scores: dict[str, dict[int, Scores]] = {part: {} for part in predictors}
        for part, predictor in predictors.items():
            samples = own.samples(predictor, target, groups)
            allowed = [count for count in counts if predictor.fewest <= count <= most]
            for count, each in _curve(predictor, samples, parts, allowed, seed, say):
                scores[part][count] = each
                say(f"{part}: {number_of(count, 'row')}")
        if any(scores.values()):
            found.append(Curves(name, scores, noise_floor(measured.frame, target)))
        else:
            say(f"{name}: {number_of(most, 'row')} to fit to")
    if not found:
        fewest = min(predictor.fewest for predictor in predictors.values())
        told = ",".join(map(str, counts))
        raise InputError(
            f"`row_counts={told}`: expected numbers from {fewest}, which a predictor takes, to {left}, which "
            f"are left where {criterion} is held out"
        )
    return found


def _curve(
    predictor: Predictor,
    samples: Samples,
    parts: Sequence[Fold],
    counts: Sequence[int],
    seed: int,
    say: Say,
) -> Iterator[tuple[int, Scores]]:
    """Yield each number of rows with the scores on all folds; fewer rows are a part of more."""
    rng = np.random.default_rng(seed)
    orders = [rng.permutation(fold.fitted) for fold in parts]
    measured = samples.target[np.concatenate([fold.tried for fold in parts])]
    for count in counts:
        predicted = [
            fit(predictor, samples.take(order[:count]), seed, say).predict(samples.take(fold.tried))
            for order, fold in zip(orders, parts, strict=True)
        ]
        yield count, score(np.concatenate(predicted), measured)
