"""``experiments/eager-allocator``."""

from __future__ import annotations

from collections.abc import Mapping
from statistics import geometric_mean

import pandas as pd

from benchmarks.recomputed.kept import one, only, points
from benchmarks.recomputed.markdown import Value
from dlas.analysis.matching import timed

BATCHES = {"batch 1": 1, "batch 8": 8}


def _points() -> pd.DataFrame:
    return points("eager-allocator/rows")


def _ratio(network: str, batch: int, column: str) -> float | None:
    """Return a column of the default over that of the pinned allocator; None where one has no result."""
    pair = only(_points(), model_name=network, batch=batch)
    usable = pair[timed(pair) & pair[column].notna()]
    if len(usable) != 2:
        return None
    default, pinned = (one(usable, column, compiler__allocator=name) for name in (None, "pinned"))
    return default / pinned


def ratios(cells: Mapping[str, str]) -> dict[str, Value]:
    """Return how many times as fast a network is with the pinned allocator, and how much memory it adds."""
    network = cells["network"].strip("`")
    found: dict[str, Value] = {}
    for heading, batch in BATCHES.items():
        found[f"{heading}: speed"] = _ratio(network, batch, "latency_s")
        memory = _ratio(network, batch, "resident_bytes")
        found[f"{heading}: memory"] = None if memory is None else 1 / memory
    return found


def _every(batch: str, column: str) -> list[float]:
    found = (_ratio(network, int(batch), column) for network in sorted(set(_points()["model_name"])))
    return [ratio for ratio in found if ratio is not None]


def mean_speed(batch: str) -> float:
    """Return the geometric mean of the speeds with the pinned allocator over those by default."""
    return geometric_mean(_every(batch, "latency_s"))


def most_speed(batch: str) -> float:
    """Return the largest speed with the pinned allocator over that by default."""
    return max(_every(batch, "latency_s"))


def least_speed(batch: str) -> float:
    """Return the least speed with the pinned allocator over that by default."""
    return min(_every(batch, "latency_s"))
