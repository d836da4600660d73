"""``experiments/eager-allocator``."""

from __future__ import annotations

from collections.abc import Mapping
from statistics import geometric_mean

import pandas as pd

from benchmarks.recomputed.kept import one, only, points
from benchmarks.recomputed.markdown import Value
from dlas.analysis.matching import timed

COLUMNS = {
    "1 thread, batch 1": (1, 1),
    "batch 8": (1, 8),
    "2 threads, batch 1": (2, 1),
    "batch 8, too": (2, 8),
}
"""Headings of the table, with the threads and the batch size that they stand for."""


def _points(threads: int, batch: int) -> pd.DataFrame:
    return only(points("eager-allocator/rows"), threads=threads, batch=batch)


def _ratio(network: str, threads: int, batch: int, column: str) -> float | None:
    """Return a column of the default over that of the pinned allocator; None where one has no result."""
    pair = only(_points(threads, batch), model_name=network)
    usable = pair[timed(pair)]
    if len(usable) != 2:
        return None
    default, pinned = (one(usable, column, compiler__allocator=name) for name in (None, "pinned"))
    return default / pinned


def speeds(cells: Mapping[str, str]) -> dict[str, Value]:
    """Return how many times as fast a network is with the pinned allocator."""
    network = cells["network"].strip("`")
    return {heading: _ratio(network, *place, "latency_s") for heading, place in COLUMNS.items()}


def _every(threads: str, batch: str, column: str) -> list[float]:
    networks = sorted(set(points("eager-allocator/rows")["model_name"]))
    found = (_ratio(network, int(threads), int(batch), column) for network in networks)
    return [ratio for ratio in found if ratio is not None]


def mean_speed(threads: str, batch: str) -> float:
    """Return the geometric mean of the speeds with the pinned allocator over those by default."""
    return geometric_mean(_every(threads, batch, "latency_s"))


def most_memory(threads: str, batch: str) -> float:
    """Return by how much more memory at most a process with the pinned allocator has added."""
    return 1 / min(_every(threads, batch, "resident_bytes"))


def unstable() -> float:
    """Return the number of points whose times are no result."""
    return float((points("eager-allocator/rows")["status"] == "unstable").sum())
