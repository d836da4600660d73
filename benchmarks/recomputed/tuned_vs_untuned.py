"""``experiments/tuned-vs-untuned``."""

from __future__ import annotations

from collections.abc import Mapping

import pandas as pd

from benchmarks.recomputed.kept import geometric_mean, only, points
from benchmarks.recomputed.markdown import Value
from dlas.analysis.matching import identity, paired

COMPILERS = {"untuned": "untuned", "`hand`": "hand", "tuned": "metaschedule"}


def _points() -> pd.DataFrame:
    return points("tuned-vs-untuned/rows", "tuned-vs-untuned/again")


def _algorithms(ranked: pd.DataFrame) -> pd.Series:
    blocked = ranked["algorithm.layout"].eq("blocked").fillna(False).map({True: " in blocks", False: ""})
    return "`" + ranked["algorithm_name"] + "`" + blocked


def ranking(cells: Mapping[str, str]) -> dict[str, Value]:
    """Return each cell's algorithms by time, and the fastest tuned one against ONNX Runtime."""
    network = only(_points(), model_name=cells["network"].strip("`"))
    found: dict[str, Value] = {}
    for header, compiler in COMPILERS.items():
        ranked = only(network, compiler_name=compiler).sort_values("latency_s")
        ratios = ranked["latency_s"] / ranked["latency_s"].min()
        named = zip(_algorithms(ranked), ratios, strict=True)
        found[header] = ", ".join(f"{algorithm} {ratio:.2f}" for algorithm, ratio in named)
    fastest = only(network, compiler_name="metaschedule")["latency_s"].min()
    runtime = only(network, compiler_name="onnxruntime")["latency_s"].min()
    return {**found, "against ONNX Runtime": float(runtime / fastest)}


def gain(compiler: str) -> float:
    """Return how many times as fast as untuned a compiler is, the geometric mean over points."""
    return geometric_mean(_pairs(compiler)["ratio"])


def matched(compiler: str) -> float:
    """Return over how many points that is."""
    return len(_pairs(compiler))


def _pairs(compiler: str) -> pd.DataFrame:
    frame = _points()
    untuned, other = frame["compiler_name"] == "untuned", frame["compiler_name"] == compiler
    return paired(frame, untuned, other, identity(("compiler",)))


def different() -> float:
    """Return the number of points."""
    return len(_points())
