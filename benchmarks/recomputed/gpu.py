"""``experiments/gpu``."""

from __future__ import annotations

from collections.abc import Mapping

import pandas as pd

from benchmarks.recomputed.kept import only, over_dense, points
from benchmarks.recomputed.markdown import Value

LIBRARY = "torch_eager"
PROGRAMS = {
    "`gemm`": ("none", "gemm"),
    "`spatial_pack`": ("none", "spatial_pack"),
    "eager PyTorch": ("none", LIBRARY),
    "`direct`, float16": ("float16", "direct"),
    "weights, 90 %: `csr_direct`": ("weight_pruning", "csr_direct"),
    "`csr_gemm`": ("weight_pruning", "csr_gemm"),
    "`csr_spatial_pack`": ("weight_pruning", "csr_spatial_pack"),
    "channels, 50 %: the fastest of the three": ("channel_pruning", None),
}
"""Headings of the table, with the compression and the algorithm that they stand for."""
SPARSE = ("csr_direct", "csr_gemm", "csr_spatial_pack")


def _points() -> pd.DataFrame:
    return points("gpu/rows")


def speed(network: str, compression: str, algorithm: str) -> float | None:
    """Return how many times as fast as dense direct convolution in float32 a program is."""
    own = {"compiler_name": algorithm} if algorithm == LIBRARY else {"algorithm": algorithm}
    return over_dense(only(_points(), model_name=network), compression_name=compression, **own)


def speeds(cells: Mapping[str, str]) -> dict[str, Value]:
    """Return the speeds of a network's programs over dense direct convolution in float32."""
    network = cells["network"]
    found: dict[str, Value] = {}
    for heading, (compression, algorithm) in PROGRAMS.items():
        candidates = SPARSE if algorithm is None else (algorithm,)
        measured = [speed(network, compression, one) for one in candidates]
        found[heading] = max((one for one in measured if one is not None), default=None)
    return found


def tuned(cells: Mapping[str, str]) -> dict[str, Value]:
    """Return how many times as fast as untuned direct convolution each algorithm's tuned code is."""
    own = only(points("gpu/tuned"), model_name=cells["network"])
    base = only(own, algorithm="direct", compiler_name="untuned")["latency_s"].item()
    searched = only(own, compiler_name="metaschedule").set_index("algorithm")["latency_s"]
    return {f"`{algorithm}`": base / seconds for algorithm, seconds in searched.items()}
