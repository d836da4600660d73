"""``experiments/dlas-imagenet``."""

from __future__ import annotations

from collections.abc import Mapping

import pandas as pd

from benchmarks.recomputed.kept import COMPILERS, only, over_dense, points
from benchmarks.recomputed.markdown import Value
from dlas.analysis.matching import timed

COMPRESSIONS = {"float32": "none", "float16": "float16", "int8": "int8"}


def _points() -> pd.DataFrame:
    frame = points("dlas-imagenet/x86")
    return frame[timed(frame)]


def speed(network: str, compression: str, compiler: str, algorithm: str) -> float | None:
    """Return how many times as fast as `direct` in float32 by the same compiler a program is."""
    frame = only(_points(), model_name=network, compiler_name=COMPILERS[compiler])
    return over_dense(frame, compression_name=COMPRESSIONS[compression], algorithm=algorithm)


def speeds(cells: Mapping[str, str]) -> dict[str, Value]:
    """Return the speeds of the three dense algorithms."""
    found = {
        algorithm: speed(cells["network"], cells["type"], cells["compiler"], algorithm)
        for algorithm in ("direct", "gemm", "spatial_pack")
    }
    return {f"`{algorithm}`": value for algorithm, value in found.items()}


def by_type(network: str, compression: str, compiler: str) -> float | None:
    """Return how many times as fast as in float32 a network is, by the fastest algorithm of each."""
    frame = only(_points(), model_name=network, compiler_name=COMPILERS[compiler])
    fastest = frame.groupby("compression_name")["latency_s"].min()
    wanted = COMPRESSIONS[compression]
    return float(fastest["none"] / fastest[wanted]) if {"none", wanted} <= set(fastest.index) else None


def unstable() -> float:
    """Return the number of points whose times are no result."""
    return float((points("dlas-imagenet/x86")["status"] == "unstable").sum())
