"""How the error of predictors falls with the number of rows that they are fitted to.

References
----------
The OFA latency predictor, Figures 4 (b) and 5 (b): the elbow is where more rows begin to gain little.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from dlas.errors import InputError
from dlas.prediction.learning.fitting import fit, values_of
from dlas.prediction.learning.metrics import Scores, score
from dlas.prediction.learning.noise import noise_floor
from dlas.prediction.learning.points import NETWORK, Points
from dlas.prediction.learning.settings import describe
from dlas.prediction.learning.splits import Criterion, Fold, check_leaks, folds
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
    target: str,
    criterion: Criterion,
    counts: Sequence[int],
    seed: int = 0,
    say: Say = print,
) -> list[Curves]:
    """Return the learning curves of predictors in each setting that has enough rows.

    Raises
    ------
    InputError
        If no setting has enough rows for any of the numbers, nothing can be held out, or a network would be
        on both sides.
    """
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
        scores = {
            part: _curve(
                part,
                predictor,
                own.samples(predictor, target, groups),
                parts,
                [count for count in counts if predictor.fewest <= count <= most],
                seed,
                say,
            )
            for part, predictor in predictors.items()
        }
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
    name: str,
    predictor: Predictor,
    samples: Samples,
    parts: Sequence[Fold],
    counts: Sequence[int],
    seed: int,
    say: Say,
) -> dict[int, Scores]:
    """Return the scores on all folds by the number of rows; fewer rows are a part of more."""
    rng = np.random.default_rng(seed)
    orders = [rng.permutation(fold.fitted) for fold in parts]
    measured = samples.target[np.concatenate([fold.tried for fold in parts])]
    found = {}
    for count in counts:
        predicted = [
            fit(predictor, samples.take(order[:count]), seed, say).predict(samples.take(fold.tried))
            for order, fold in zip(orders, parts, strict=True)
        ]
        found[count] = score(np.concatenate(predicted), measured)
        say(f"{name}: {number_of(count, 'row')}")
    return found
