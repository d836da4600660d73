"""``experiments/eager-allocator``."""

from __future__ import annotations

from collections.abc import Mapping
from statistics import fmean, geometric_mean

import pandas as pd

from benchmarks.recomputed.kept import one, only, points, slow
from benchmarks.recomputed.kernels import unseen
from benchmarks.recomputed.markdown import Value
from dlas.analysis.matching import timed

BATCHES = {"batch 1": 1, "batch 8": 8}


def _points() -> pd.DataFrame:
    return points("eager-allocator/rows")


def _ratio(network: str, threads: int, batch: int, column: str) -> float | None:
    """Return a column of the default over that of the pinned allocator; None where one has no result."""
    pair = only(_points(), model_name=network, threads=threads, batch=batch)
    usable = pair[timed(pair) & pair[column].notna()]
    if len(usable) != 2:
        return None
    default, pinned = (one(usable, column, compiler__allocator=name) for name in (None, "pinned"))
    return default / pinned


def ratios(cells: Mapping[str, str]) -> dict[str, Value]:
    """Return how many times as fast a network is with the pinned allocator, and how much memory it adds."""
    network, threads = cells["network"].strip("`"), int(cells["threads"])
    found: dict[str, Value] = {}
    for heading, batch in BATCHES.items():
        found[f"{heading}: speed"] = _ratio(network, threads, batch, "latency_s")
        memory = _ratio(network, threads, batch, "resident_bytes")
        found[f"{heading}: memory"] = None if memory is None else 1 / memory
    return found


def faults(cells: Mapping[str, str]) -> dict[str, Value]:
    """Return the page faults of an inference with each allocator, in thousands, one thread."""
    network = only(points("eager-allocator/faults"), model_name=cells["network"].strip("`"))
    return {
        f"{heading}: {name}": one(network, "page_faults", compiler__allocator=option, batch=batch) / 1e3
        for heading, batch in BATCHES.items()
        for name, option in (("glibc", None), ("pinned", "pinned"))
    }


def _every(threads: str, batch: str, column: str) -> list[float]:
    networks = sorted(set(_points()["model_name"]))
    found = (_ratio(network, int(threads), int(batch), column) for network in networks)
    return [ratio for ratio in found if ratio is not None]


def mean_speed(threads: str, batch: str) -> float:
    """Return the geometric mean of the speeds with the pinned allocator over those by default."""
    return geometric_mean(_every(threads, batch, "latency_s"))


def most_speed(threads: str, batch: str) -> float:
    """Return the largest speed with the pinned allocator over that by default."""
    return max(_every(threads, batch, "latency_s"))


def least_speed(threads: str, batch: str) -> float:
    """Return the least speed with the pinned allocator over that by default."""
    return min(_every(threads, batch, "latency_s"))


def most_memory(threads: str, batch: str) -> float:
    """Return the most memory that a process adds with the pinned allocator, over that by default."""
    return 1 / min(_every(threads, batch, "resident_bytes"))


@slow
def predicted(allocator: str) -> float:
    """Return the mean error of networks on one thread in percent, from drawn ones alone: three fits' mean."""
    fits = (unseen(("eager-allocator/draws",), "eager-allocator/rows", seed) for seed in range(3))
    return fmean(
        abs(error)
        for errors in fits
        for (compiler, *_), error in errors.items()
        if ("pinned" in compiler) == (allocator == "pinned")
    )
