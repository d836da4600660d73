"""``experiments/gpu``."""

from __future__ import annotations

from collections.abc import Mapping

import pandas as pd

from benchmarks.recomputed.kept import only, points
from benchmarks.recomputed.markdown import Value
from dlas.analysis.matching import timed

LIBRARY = "torch_eager"
COMPRESSIONS = {"": "none", "weights, 90 %": "weight_pruning", "channels, 50 %": "channel_pruning"}


def _points() -> pd.DataFrame:
    return points("gpu/rows")


def speed(network: str, compression: str, algorithm: str) -> float | None:
    """Return how many times as fast as dense direct convolution in float32 a program is."""
    frame = _points()
    frame = only(frame[timed(frame)], model_name=network)
    own = {"compiler_name": algorithm} if algorithm == LIBRARY else {"algorithm": algorithm}
    dense = only(frame, compression_name="none", algorithm="direct")["latency_s"]
    found = only(frame, compression_name=compression, **own)["latency_s"]
    return float(dense.iloc[0] / found.iloc[0]) if len(found) else None


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
