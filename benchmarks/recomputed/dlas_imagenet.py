"""``experiments/dlas-imagenet``."""

from __future__ import annotations

from collections.abc import Mapping

import pandas as pd

from benchmarks.recomputed.kept import one, only, points
from benchmarks.recomputed.markdown import Value
from benchmarks.recomputed.stack_figure import PRUNINGS, StackFigure

FIGURE = StackFigure("dlas-imagenet/x86")
PERCENT = 100.0


def _technique(compression: str) -> str:
    """Return what a table calls a compression as a part's name: ``weights, 80 %`` is ``weight_pruning``."""
    if compression == "dense":
        return "none"
    return PRUNINGS.get(compression.split(",")[0], compression)


def speed(network: str, compression: str, compiler: str, algorithm: str) -> float | None:
    """Return how many times as fast as dense `direct` in float32 by the same compiler a program is."""
    return FIGURE.speed(network, _technique(compression), compiler, algorithm)


def speeds(cells: Mapping[str, str]) -> dict[str, Value]:
    """Return the speeds of the three algorithms of a compression, sparse ones of pruned networks."""
    return FIGURE.speeds(cells["network"], _technique(cells["compression"]), cells["compiler"])


def over_fastest_dense(network: str, compression: str, compiler: str) -> float:
    """Return how many times as fast as the fastest dense program the fastest of a compression is."""
    return FIGURE.over_fastest_dense(network, _technique(compression), compiler)


def pruned_globally(cells: Mapping[str, str]) -> dict[str, Value]:
    """Return what a trained network kept of its accuracy, its weights and its multiply-adds, in percent."""
    line = _trained(cells["network"], cells["pruned"])
    return {
        "accuracy": PERCENT * one(line, "accuracy"),
        "weights zero": None if cells["pruned"] == "dense" else PERCENT * one(line, "ratio"),
        "multiply-adds left": PERCENT * one(line, "effective_macs") / one(line, "macs"),
    }


def with_zeros(network: str, pruning: str) -> float | None:
    """Return the speed of dense `direct`, untuned, on weights that were pruned."""
    return speed(network, pruning, "untuned", "direct")


def promised(network: str, pruning: str) -> float:
    """Return how many times fewer multiply-adds than dense a timed network has that is pruned."""
    frame = only(FIGURE.programs(network, "tuned"), compression_name=PRUNINGS[pruning])
    return float((frame["macs"] / frame["effective_macs"]).iloc[0])


def _trained(network: str, compression: str) -> pd.DataFrame:
    frame = points("dlas-imagenet/levels")
    return only(frame, model_name=network, compression_name=_technique(compression))


def unstable() -> float:
    """Return the number of points whose times are no result."""
    return FIGURE.unstable()
