"""``experiments/training-cost``."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache

import numpy as np

from benchmarks.predictors import HELD_LEVELS, TOLD
from benchmarks.recomputed import evaluated
from benchmarks.recomputed.kept import only, points, slow
from benchmarks.recomputed.markdown import Value
from dlas.prediction.learning.fitting import fit, values_of
from dlas.prediction.learning.metrics import Scores
from dlas.prediction.learning.points import Points
from dlas.prediction.learning.settings import predictor_of
from dlas.prediction.learning.splits import Criterion, folds

FOLDERS = ("training-cost/rows", "training-cost/again")
TARGETS = {"memory": "peak_memory_bytes", "time": "latency_min_s"}
HELD_OUT = {
    "6 of 19 levels": str(HELD_LEVELS),
    "ResNet-50, MnasNet, GoogLeNet": f"model={','.join(TOLD)}",
    "batch 128": "batch=128",
}
PRUNED = 0.9


def _points(target: str) -> Points:
    return evaluated.read(TARGETS[target], *FOLDERS)


@slow
def errors(cells: Mapping[str, str]) -> dict[str, Value]:
    """Return the mean errors of predictors on what was held out."""
    target = cells["target"]
    names = [name for name in cells if name not in ("held out", "target")]
    return {
        name: 100
        * evaluated.scores(
            predictor_of(name, {}), _points(target), TARGETS[target], HELD_OUT[cells["held out"]]
        ).mape
        for name in names
    }


@cache
def _on_levels(predictor: str, target: str) -> Scores:
    part = {predictor: predictor_of(predictor, {})}
    (found,) = evaluated.evaluated(part, _points(target), TARGETS[target], str(HELD_LEVELS))
    return found.first.overall()


def covered(predictor: str, target: str) -> float:
    """Return the percentage of rows of held-out levels in their intervals."""
    return 100 * float(_on_levels(predictor, target).coverage or np.nan)


def width(predictor: str, target: str) -> float:
    """Return the upper over the lower end of intervals, the median."""
    return 1 + float(_on_levels(predictor, target).width or np.nan)


def floor(target: str) -> float:
    """Return the least mean error that repeats allow, in percent."""
    return evaluated.floor(_points(target), TARGETS[target])


def differs(target: str) -> float:
    """Return by how much repeats differ, in percent."""
    return evaluated.differs(_points(target), TARGETS[target])


def error(predictor: str, held_out: str, target: str) -> float:
    """Return a predictor's mean error in percent on held-out ``levels`` or ``networks``."""
    hold_out = HELD_OUT["6 of 19 levels" if held_out == "levels" else "ResNet-50, MnasNet, GoogLeNet"]
    part = predictor_of(predictor, {})
    return 100 * evaluated.scores(part, _points(target), TARGETS[target], hold_out).mape


@cache
def _of_told(target: str) -> Mapping[str, float]:
    """Return the mean error of `additive` on each network that is held out, in percent."""
    part, own = predictor_of("additive", {}), _points(target).merged(TARGETS[target])
    criterion = Criterion.parse(HELD_OUT["ResNet-50, MnasNet, GoogLeNet"])
    samples = own.samples(part, TARGETS[target], values_of(own, criterion))
    (fold,) = folds(criterion, samples.groups, 0)
    fitted = fit(part, samples.take(fold.fitted), say=lambda line: None)
    models = own.frame["model_name"].to_numpy()[fold.tried]
    tried = samples.take(fold.tried)
    wrong = np.abs(fitted.predict(tried) / tried.target - 1)
    return {str(model): 100 * float(wrong[models == model].mean()) for model in set(models)}


def of_network(model: str, target: str) -> float:
    """Return the mean error on a network that was held out with two others, in percent."""
    return _of_told(target)[model]


def straight(target: str) -> float:
    """Return the least share of variance that a line over batch sizes explains, in percent."""
    frame = points("training-cost/rows").fillna({"compression.level": 0.0})
    shares = [
        np.corrcoef(own["batch"].astype(float), own[TARGETS[target]].astype(float))[0, 1] ** 2
        for _, own in frame.groupby(["model_name", "compression.level"])
    ]
    return 100 * float(min(shares))


def faster(choose: str, batch: str, target: str) -> float:
    """Return the least or largest ratio of dense and of pruned networks' steps at a batch size."""
    frame, column = points("training-cost/rows"), TARGETS[target]
    own = only(frame, batch=int(batch))
    dense, pruned = (
        each.set_index("model_name")[column]
        for each in (only(own, compression_name="none"), only(own, compression__level=PRUNED))
    )
    return float(getattr(dense / pruned, choose)())
