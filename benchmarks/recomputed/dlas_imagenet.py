"""``experiments/dlas-imagenet``."""

from __future__ import annotations

from collections.abc import Mapping

import pandas as pd

from benchmarks.recomputed.kept import COMPILERS, one, only, over_dense, points
from benchmarks.recomputed.markdown import Value
from dlas.analysis.matching import timed

PRUNINGS = {"weights": "weight_pruning", "channels": "channel_pruning"}
PERCENT = 100.0


def _points() -> pd.DataFrame:
    frame = points("dlas-imagenet/x86")
    return frame[timed(frame)]


def _technique(compression: str) -> str:
    """Return what a table calls a compression as a part's name: ``weights, 80 %`` is ``weight_pruning``."""
    if compression == "dense":
        return "none"
    return PRUNINGS.get(compression.split(",")[0], compression)


def speed(network: str, compression: str, compiler: str, algorithm: str) -> float | None:
    """Return how many times as fast as dense `direct` in float32 by the same compiler a program is."""
    frame = only(_points(), model_name=network, compiler_name=COMPILERS[compiler])
    return over_dense(frame, compression_name=_technique(compression), algorithm=algorithm)


def speeds(cells: Mapping[str, str]) -> dict[str, Value]:
    """Return the speeds of the three algorithms of a compression, sparse ones of pruned networks."""
    form = "csr_" if _technique(cells["compression"]) in PRUNINGS.values() else ""
    return {
        f"`{name}`": speed(cells["network"], cells["compression"], cells["compiler"], form + name)
        for name in ("direct", "gemm", "spatial_pack")
    }


def over_fastest_dense(network: str, compression: str, compiler: str) -> float:
    """Return how many times as fast as the fastest dense program the fastest of a compression is."""
    frame = only(_points(), model_name=network, compiler_name=COMPILERS[compiler])
    fastest = frame.groupby("compression_name")["latency_s"].min()
    return float(fastest["none"] / fastest[_technique(compression)])


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
    frame = only(_points(), model_name=network, compression_name=PRUNINGS[pruning])
    return float((frame["macs"] / frame["effective_macs"]).iloc[0])


def _trained(network: str, compression: str) -> pd.DataFrame:
    frame = points("dlas-imagenet/levels")
    return only(frame, model_name=network, compression_name=_technique(compression))


def unstable() -> float:
    """Return the number of points whose times are no result."""
    return float((points("dlas-imagenet/x86")["status"] == "unstable").sum())
