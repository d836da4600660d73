"""``experiments/training-digits``."""

from __future__ import annotations

from collections.abc import Mapping

from benchmarks.recomputed import evaluated
from benchmarks.recomputed.kept import slow
from benchmarks.recomputed.markdown import Value

ROWS = "training-digits/rows"
TARGETS = {"memory": "peak_memory_bytes", "time": "latency_min_s"}


@slow
def errors(cells: Mapping[str, str]) -> dict[str, Value]:
    """Return the mean errors of a predictor and of the baselines on levels that were held out, in percent."""
    target = TARGETS[cells["target"]]
    found = evaluated.errors("additive", {}, evaluated.read(target, ROWS), target, "compression.level")
    return {f"`{name}`": error for name, error in found.items()}
