"""``experiments/sparse-break-even``."""

from __future__ import annotations

from collections.abc import Mapping

import pandas as pd

from benchmarks.recomputed.kept import one, only, points
from benchmarks.recomputed.markdown import Value
from dlas.analysis.break_even import SpeedCurve, curves

COMPILERS = {"untuned": "untuned", "`hand`": "hand", "tuned": "metaschedule(trials=8)"}


def _points(folder: str = "rows") -> pd.DataFrame:
    return points(f"sparse-break-even/{folder}")


def _curve(algorithm: str, compiler: str, folder: str) -> SpeedCurve:
    (found,) = (
        curve
        for curve in curves(_points(folder))
        if (curve.algorithm, curve.compiler) == (algorithm, compiler)
    )
    return found


def speeds(cells: Mapping[str, str], folder: str = "rows") -> dict[str, Value]:
    """Return an algorithm's speed against the fastest dense code by level, and where it breaks even."""
    curve = _curve(cells["algorithm"].split("`")[1], COMPILERS[cells["compiler"]], folder)
    by_level = zip(curve.ratios, curve.speeds, strict=True)
    found = {f"{100 * level:.0f} %": speed for level, (speed, _, _) in by_level}
    levels = [column for column in cells if column.endswith(" %")]
    even = curve.in_words.replace("already at", "below")
    recomputed: dict[str, Value] = {level: found.get(level) for level in levels}
    return recomputed | {"breaks even": even}


def speeds_on_zen4(cells: Mapping[str, str]) -> dict[str, Value]:
    """Return the same of the rows of a Zen 4."""
    return speeds({**cells, "compiler": "`hand`"}, "zen4")


def dense(algorithm: str, compiler: str = "hand", folder: str = "rows") -> float:
    """Return a dense algorithm's speed against ONNX Runtime."""
    every = only(_points(folder), compression="none")
    taken = only(every, algorithm_name=algorithm, compiler_name=compiler)["latency_s"].min()
    return one(every, "latency_s", compiler_name="onnxruntime") / float(taken)


def searched(choose: str) -> float:
    """Return the least or largest speed of tuned sparse code against ``hand``."""
    sparse = only(_points(), kind="pruned")
    pairs = only(sparse, compiler_name="hand").merge(
        only(sparse, compiler_name="metaschedule"), on=["algorithm", "compression"]
    )
    ratios = pairs["latency_s_x"] / pairs["latency_s_y"]
    return float(getattr(ratios, choose)())


def against_onnxruntime(choose: str, level: str) -> float:
    """Return the least or largest speed of ``hand`` at a level against ONNX Runtime in the same turns."""
    pruned = only(_points(), compression__level=float(level))
    runtime = only(pruned, compiler_name="onnxruntime")
    pairs = only(pruned, compiler_name="hand").merge(runtime, on="compression")
    return float(getattr(pairs["latency_s_y"] / pairs["latency_s_x"], choose)())


def left(level: str) -> float:
    """Return how many percent of the multiply-adds are left at a level, the mean over both prunings."""
    pruned = only(_points(), compression__level=float(level))
    return 100 * float((pruned["effective_macs"] / pruned["macs"]).mean())
