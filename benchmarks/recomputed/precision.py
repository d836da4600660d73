"""``experiments/precision``."""

from __future__ import annotations

from collections.abc import Mapping

import pandas as pd

from benchmarks.recomputed.kept import only, points
from benchmarks.recomputed.markdown import Value
from dlas.analysis.matching import timed

COMPILERS = {"tuned": "metaschedule", "ONNX Runtime": "onnxruntime"}
TYPES = ("float16", "bfloat16", "int8")
BLOCKED = "spatial_pack(layout=blocked)"


def _points() -> pd.DataFrame:
    return points("precision/rows")


def _algorithm(cell: str) -> str:
    return BLOCKED if "blocked layout" in cell else cell.strip("`") or "library"


def _latency(frame: pd.DataFrame, compression: str) -> float | None:
    found = only(frame[timed(frame)], compression_name=compression)
    return float(found["latency_s"].iloc[0]) if len(found) else None


def speeds(cells: Mapping[str, str]) -> dict[str, Value]:
    """Return how many times as fast as in float32 a network is by each type."""
    compiler = cells["compiler"].strip("`")
    frame = only(
        _points(),
        dataset_name="random",
        model_name=cells["network"],
        compiler_name=COMPILERS.get(compiler, compiler),
        algorithm=_algorithm(cells["algorithm"]),
    )
    taken = {name: _latency(frame, name) for name in ("none", *TYPES)}
    base = taken.pop("none")
    return {name: base / each if base and each else None for name, each in taken.items()}


def bytes_of_types(cells: Mapping[str, str]) -> dict[str, Value]:
    """Return the shares of float32's bytes on disk and at the peak."""
    network = cells["network, `spatial_pack` in the blocked layout"]
    frame = only(
        _points(), dataset_name="random", model_name=network, compiler_name="hand", algorithm=BLOCKED
    ).set_index("compression_name")
    columns = {"bytes of the network": "model_bytes", "peak memory": "peak_memory_bytes"}
    types = cells["type"].split(", ")
    return {
        header: float((frame[column].loc[types] / float(frame[column]["none"])).mean())
        for header, column in columns.items()
    }


def _named(network: str) -> dict[str, object]:
    """Return the axes that name a network of the table of zeros left out."""
    compression = "none"
    for written, name in (("blocks", "block_pruning"), ("of weights", "weight_pruning")):
        if written in network:
            compression = name
            break
    if network.endswith("int8"):
        compression = "int8" if compression == "none" else f"{compression}+int8"
    return {"compression_name": compression}


def both(cells: Mapping[str, str]) -> dict[str, Value]:
    """Return the speeds of zeros left out, smaller numbers, and both."""
    frame = points("precision/pruned")
    kernels = cells["kernels"]
    algorithm = "library" if kernels == "ONNX Runtime" else _algorithm(kernels.split(" (")[0])
    base = only(frame, compression_name="none", algorithm=BLOCKED)["latency_s"].iloc[0]
    taken = only(frame, algorithm=algorithm, **_named(cells["network"]))["latency_s"].iloc[0]
    return {"speed": float(base / taken)}


def gain(kernel: str, over: str, compression: str) -> float:
    """Return how many times as fast int8 with a sparse kernel is as another compression with a kernel."""
    frame = points("precision/pruned")
    sparse = {"csr_direct": "weight_pruning", "csr_gemm": "weight_pruning", "bsr_direct": "block_pruning"}
    fast = only(frame, algorithm=kernel, compression_name=f"{sparse[kernel]}+int8")["latency_s"].iloc[0]
    slow = only(frame, algorithm=BLOCKED if over == "blocked" else over, compression_name=compression)[
        "latency_s"
    ].iloc[0]
    return float(slow / fast)


def over_runtime(kernels: str, compression: str) -> float:
    """Return the speed of dense kernels against ONNX Runtime on the same network, one thread."""
    frame = only(points("precision/pruned"), compression_name=compression)
    named = BLOCKED if kernels == "spatial_pack" else kernels
    taken, runtime = (only(frame, algorithm=name)["latency_s"].iloc[0] for name in (named, "library"))
    return float(runtime / taken)


def left(technique: str) -> float:
    """Return how many percent of the multiply-adds a pruning to 90 % leaves."""
    network = only(points("precision/pruned"), compression_name=technique).iloc[0]
    return 100 * float(network["effective_macs"] / network["macs"])


def extreme(choose: str, kind: str, compiler: str) -> float:
    """Return the least or largest speed of a type over float32 under a compiler."""
    frame = only(_points(), dataset_name="random", compiler_name=compiler)
    frame = frame[timed(frame)]
    pairs = only(frame, compression_name="none").merge(
        only(frame, compression_name=kind), on=["dataset", "model", "algorithm"]
    )
    return float(getattr(pairs["latency_s_x"] / pairs["latency_s_y"], choose)())


def unstable() -> float:
    """Return the number of points without a time."""
    return float((~timed(_points())).sum())


def accuracy(choose: str) -> float:
    """Return the least or largest accuracy of the networks trained on digits, in percent."""
    return float(getattr(100 * only(_points(), dataset_name="digits")["accuracy"], choose)())
