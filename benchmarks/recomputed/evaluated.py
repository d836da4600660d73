"""What predictors say of kept rows that were held out, as ``dlas evaluate`` computes it."""

from __future__ import annotations

import math
from collections.abc import Mapping
from functools import cache

from benchmarks.recomputed.kept import EXPERIMENTS
from dlas.prediction.learning.fitting import fit, values_of
from dlas.prediction.learning.metrics import Scores, score
from dlas.prediction.learning.noise import noise_floor
from dlas.prediction.learning.points import Points, read_points
from dlas.prediction.learning.settings import (
    EvaluationProtocol,
    SettingEvaluation,
    evaluate_settings,
    predictor_of,
)
from dlas.prediction.learning.splits import Criterion, folds
from dlas.stack import Predictor


@cache
def read(target: str, *folders: str) -> Points:
    """Return the points of folders below ``experiments/`` that a predictor can be fitted to."""
    return read_points([EXPERIMENTS / folder for folder in folders], target)


def evaluated(
    predictors: Mapping[str, Predictor], points: Points, target: str, hold_out: str
) -> list[SettingEvaluation]:
    """Return predictors and baselines on what is held out, setting by setting."""
    protocol = EvaluationProtocol(target, Criterion.parse(hold_out))
    return evaluate_settings(predictors, points, protocol, lambda line: None)


def errors(
    name: str, settings: Mapping[str, str], points: Points, target: str, hold_out: str
) -> dict[str, float]:
    """Return the mean errors in percent, all folds together, of a predictor and of the baselines."""
    (found,) = evaluated({name: predictor_of(name, settings)}, points, target, hold_out)
    return {each: 100 * evaluation.overall().mape for each, evaluation in found.evaluations.items()}


def scores(predictor: Predictor, points: Points, target: str, hold_out: str) -> Scores:
    """Return the scores of the rows of one fold, without the fits that intervals take."""
    criterion, own = Criterion.parse(hold_out), points.merged(target)
    samples = own.samples(predictor, target, values_of(own, criterion))
    (fold,) = folds(criterion, samples.groups, 0)
    tried = samples.take(fold.tried)
    fitted = fit(predictor, samples.take(fold.fitted), say=lambda line: None)
    return score(fitted.predict(tried), tried.target)


def floor(points: Points, target: str) -> float:
    """Return the noise floor, in percent: the mean error of one measurement."""
    found = noise_floor(points.frame, target)
    assert found is not None
    return 100 * found


def differs(points: Points, target: str) -> float:
    """Return by how many percent two measurements of a point differ: the noise floor times the root of 2."""
    return math.sqrt(2) * floor(points, target)
