"""``experiments/training-digits``."""

from __future__ import annotations

from benchmarks.recomputed import evaluated
from benchmarks.recomputed.kept import points, slow
from dlas.prediction.learning.settings import predictor_of

ROWS = "training-digits/rows"


def count() -> float:
    return float(len(points(ROWS)))


def noisy() -> float:
    return float(points(ROWS)["noisy"].fillna(False).sum())


@slow
def error(target: str) -> float:
    """Return by how many percent `additive` is off on levels that were held out."""
    predictor = predictor_of("additive", {})
    return 100 * evaluated.scores(predictor, evaluated.read(target, ROWS), target, "compression.level").mape
