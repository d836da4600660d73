"""``experiments/leaf-digits``."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache

import pandas as pd

from benchmarks.fine_tuning import gains, interval
from benchmarks.recomputed.kept import EXPERIMENTS, one, only, points
from benchmarks.recomputed.markdown import Value
from dlas.analysis import paths
from dlas.sweep.rows.results import read_rows

BATCHES = (1, 4, 16, 64)
COLUMNS = (
    "compression_name",
    "compression.path",
    "compiler_name",
    "threads",
    "batch",
    "latency_s",
    "macs",
    "accuracy",
)
"""Of the networks with paths: choosing lines of all columns takes seconds."""


def _network(frame: pd.DataFrame, path: str) -> pd.DataFrame:
    """Return the points of a path, or of the network without paths."""
    if path == "dense network":
        return only(frame, compression_name="none")
    return only(frame, compression__path=path)


def _legacy(frame: pd.DataFrame) -> pd.DataFrame:
    return _network(frame, "0" * int(frame["compression.path"].dropna().str.len().iloc[0]))


def _times(frame: pd.DataFrame, path: str, **place: object) -> float:
    """Return how many times as fast as the legacy network a path is in one place."""
    return one(_legacy(frame), "latency_s", **place) / one(_network(frame, path), "latency_s", **place)


def _work(frame: pd.DataFrame, path: str) -> float:
    """Return a path's multiply-adds, in percent of the legacy network's."""
    return 100 * float(_network(frame, path)["macs"].iloc[0] / _legacy(frame)["macs"].iloc[0])


def _accuracy(frame: pd.DataFrame, path: str) -> float:
    return 100 * float(_network(frame, path)["accuracy"].mean())


def by_threads(cells: Mapping[str, str]) -> dict[str, Value]:
    """Return accuracy and speeds of a path by threads and compiler."""
    frame, path = points("leaf-digits/rows")[[*COLUMNS]], cells["path"]
    places = {
        "1 thread, batch 1": ("hand", 1, 1),
        "batch 64": ("hand", 1, 64),
        "2 threads, batch 1": ("hand", 2, 1),
        "batch 64 (2)": ("hand", 2, 64),
        "ONNX Runtime, batch 1": ("onnxruntime", 2, 1),
        "batch 64 (3)": ("onnxruntime", 2, 64),
    }
    return {
        "multiply-adds": _work(frame, path),
        "accuracy": _accuracy(frame, path),
        **{
            column: _times(frame, path, compiler_name=compiler, threads=threads, batch=batch)
            for column, (compiler, threads, batch) in places.items()
        },
    }


def with_noise(cells: Mapping[str, str]) -> dict[str, Value]:
    """Return accuracy and speeds of a path with noise, and its accuracies over five seeds."""
    path = cells["path"]
    found = {"accuracy": _accuracy(points("leaf-digits/noisy"), path), **_by_batch("noisy", path)}
    if path != "dense network":
        seeds = points("leaf-digits/fine-tuned")
        base = seeds["compression.stage"].isna()
        found["five seeds, base"] = _accuracy(seeds[base], path)
        found["fine-tuned"] = _accuracy(seeds[~base], path)
    return found


def by_batch(cells: Mapping[str, str]) -> dict[str, Value]:
    """Return the speeds of a path of a network at 224 pixels."""
    path = cells["path"]
    return _by_batch("resnet50" if len(path) == 4 else "mobilenet-v2", path)


def _by_batch(folder: str, path: str) -> dict[str, Value]:
    frame = points(f"leaf-digits/{folder}")[[*COLUMNS]]
    times = {f"batch {batch}": _times(frame, path, batch=batch) for batch in BATCHES}
    return {"multiply-adds": _work(frame, path), **times}


def pruned(cells: Mapping[str, str]) -> dict[str, Value]:
    """Return multiply-adds, accuracy and speed of a pruned network beside the legacy network."""
    frame, legacy = points("leaf-digits/pruned"), _legacy(points("leaf-digits/noisy"))
    *named, level = cells["network"].split("level ")
    name = named[0].split("`")[1] if "`" in named[0] else _last_technique(cells)
    network = only(frame, compression_name=name, compression__level=float(level))
    (of,), (dense,) = network.to_dict("records"), only(legacy, batch=1).to_dict("records")
    return {
        "multiply-adds": 100 * of["macs"] / dense["macs"],
        "with weights other than zero": 100 * of["effective_macs"] / dense["macs"],
        "accuracy": 100 * of["accuracy"],
        "times as fast": dense["latency_s"] / of["latency_s"],
    }


def _last_technique(cells: Mapping[str, str]) -> str:
    """Return the technique of a line that names its level alone: zeros cost no work in removed channels."""
    return "weight_pruning" if cells["multiply-adds"] == "100 %" else "compact_channel_pruning"


@cache
def _gains() -> dict[int, tuple[float, list[str]]]:
    return gains(read_rows(EXPERIMENTS / "leaf-digits/fine-tuned"))


def fine_tuning(cells: Mapping[str, str]) -> dict[str, Value]:
    """Return a seed's gain from fine-tuning, and the paths that it kept."""
    gain, paths = _gains()[int(cells["seed"])]
    return {"gain": 100 * gain, "paths kept": " ".join(paths)}


def mean_gain(place: str) -> float:
    """Return the mean gain over the seeds (0) or an end of its interval (1, 2), in points."""
    return 100 * interval([gain for gain, _ in _gains().values()])[int(place)]


def left(technique: str, level: str) -> float:
    """Return how many percent of the multiply-adds a pruned network's weights other than zero take."""
    network = only(points("leaf-digits/pruned"), compression_name=technique, compression__level=float(level))
    return 100 * float((network["effective_macs"] / network["macs"]).iloc[0])


@cache
def _paths(folder: str) -> pd.DataFrame:
    return paths.require(points(f"leaf-digits/{folder}"))


def correlation(folder: str, batch: str) -> float:
    """Return the rank correlation of multiply-adds and latency over paths at a batch size."""
    places = paths.places(_paths(folder))
    return one(places, "correlation", batch=int(batch))


def correlations(folder: str, choose: str) -> float:
    """Return the least or largest rank correlation of multiply-adds and latency over all places."""
    return float(getattr(paths.places(_paths(folder))["correlation"], choose)())


def changed(folder: str, along: str) -> float:
    """Return at how many places the Pareto set surely changes along a column."""
    changes = only(paths.changes(_paths(folder)), along=along)
    return float(((changes["enter"] != ()) | (changes["leave"] != ())).sum())


def compared(folder: str, along: str) -> float:
    """Return how many places are compared for that."""
    return len(only(paths.changes(_paths(folder)), along=along))


def work(folder: str, path: str, batch: str) -> float:
    """Return the multiply-adds of a path at a batch size, in billions."""
    macs = _network(points(f"leaf-digits/{folder}"), path)["macs"].iloc[0]
    return float(macs) * int(batch) / 1e9
