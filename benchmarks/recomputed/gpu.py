"""``experiments/gpu``."""

from __future__ import annotations

from collections.abc import Mapping

import pandas as pd

from benchmarks.recomputed.kept import only, over_dense, points
from benchmarks.recomputed.markdown import Value
from dlas.analysis.matching import timed

LIBRARY = "torch_eager"
COMPRESSIONS = {"": "none", "weights, 90 %": "weight_pruning", "channels, 50 %": "channel_pruning"}


def _points() -> pd.DataFrame:
    return points("gpu/rows")


def speed(network: str, compression: str, algorithm: str) -> float | None:
    """Return how many times as fast as dense direct convolution in float32 a program is."""
    own = {"compiler_name": algorithm} if algorithm == LIBRARY else {"algorithm": algorithm}
    return over_dense(only(_points(), model_name=network), compression_name=compression, **own)


def speeds(cells: Mapping[str, str]) -> dict[str, Value]:
    """Return the speed of a program."""
    compression = COMPRESSIONS.get(cells["pruned"], cells["pruned"])
    found = speed(cells["network"], compression, cells["algorithm"].strip("`"))
    return {"times as fast as `direct` in float32": found}


def unstable() -> float:
    """Return the number of points whose times are no result."""
    return float((_points()["status"] == "unstable").sum())


def timed_points() -> float:
    """Return the number of points with a time that is a result."""
    return float(timed(_points()).sum())
