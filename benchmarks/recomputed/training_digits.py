"""``experiments/training-digits``."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache

from benchmarks.recomputed import evaluated
from benchmarks.recomputed.kept import points, slow
from benchmarks.recomputed.markdown import Value
from dlas.prediction.learning.settings import SettingEvaluation, predictor_of

ROWS = "training-digits/rows"
TARGETS = {"memory": "peak_memory_bytes", "time": "latency_min_s"}
PREDICTOR = "additive"


@cache
def _evaluated(target: str) -> SettingEvaluation:
    read = evaluated.read(target, ROWS)
    predictors = {PREDICTOR: predictor_of(PREDICTOR, {})}
    (found,) = evaluated.evaluated(predictors, read, target, "compression.level")
    return found


@slow
def errors(cells: Mapping[str, str]) -> dict[str, Value]:
    """Return the mean errors of a predictor and of the baselines on levels that were held out, in percent."""
    found = _evaluated(TARGETS[cells["target"]]).evaluations
    return {f"`{name}`": 100 * each.overall().mape for name, each in found.items()}


def measured() -> float:
    return float(len(points(ROWS)))


def noisy() -> float:
    return float(points(ROWS)["noisy"].fillna(False).sum())
