"""``experiments/devices``."""

from __future__ import annotations

import itertools
from collections.abc import Mapping

import numpy as np
import pandas as pd

from benchmarks.recomputed.kept import geometric_mean, only, points
from benchmarks.recomputed.markdown import Value
from dlas.analysis.matching import timed

DEVICES = {"native": "local_cpu", "wasmtime": "wasmtime", "Node": "node", "Chromium": "chromium"}
"""Headings of columns, with the devices that they stand for."""
APART = 1.05
"""Two times are apart from this factor on."""
TEN, DRAWS = 10, 100
"""Points of a device that a factor is fitted to, and how often they are drawn."""


def _points() -> pd.DataFrame:
    frame = points("devices/rows")
    measured: pd.DataFrame = frame[timed(frame)]
    return measured


def _fastest(network: str, device: str, compression: str) -> pd.Series | None:
    """Return the fastest program of a network on a device."""
    found = only(_points(), model_name=network, hardware_name=device, compression_name=compression)
    return None if found.empty else found.sort_values("latency_s").iloc[0]


def _seconds(network: str, device: str, compression: str = "none") -> float | None:
    fastest = _fastest(network, device, compression)
    return None if fastest is None else float(fastest["latency_s"])


def _over(first: float | None, second: float | None) -> float | None:
    return None if first is None or second is None else first / second


def winners(cells: Mapping[str, str]) -> dict[str, Value]:
    """Return the fastest dense algorithm of a network on each device."""
    found = {heading: _fastest(cells["network"], device, "none") for heading, device in DEVICES.items()}
    return {heading: f"`{row['algorithm']}`" for heading, row in found.items() if row is not None}


def costs(cells: Mapping[str, str]) -> dict[str, Value]:
    """Return the time of the fastest dense program on each engine over that of the processor's own code."""
    native = _seconds(cells["network"], "local_cpu")
    return {
        heading: _over(_seconds(cells["network"], device), native)
        for heading, device in DEVICES.items()
        if device != "local_cpu"
    }


def sparse(cells: Mapping[str, str]) -> dict[str, Value]:
    """Return how many times as fast as the fastest dense program the fastest one of 90 % zeros is."""
    return _gains(cells["network"], "weight_pruning")


def integers(cells: Mapping[str, str]) -> dict[str, Value]:
    """Return how many times as fast as the fastest dense program in float32 the fastest one in int8 is."""
    return _gains(cells["network"], "int8")


def mean_cost(heading: str) -> float:
    """Return the geometric mean of :func:`costs` over all networks."""
    networks = sorted(_points()["model_name"].unique())
    found = [costs({"network": network})[heading] for network in networks]
    return geometric_mean(pd.Series([value for value in found if isinstance(value, float)]))


def mean_gain(kind: str, heading: str) -> float:
    """Return the geometric mean of :func:`sparse` or :func:`integers` over all networks."""
    table = {"sparse": sparse, "integers": integers}[kind]
    networks = sorted(_points()["model_name"].unique())
    found = [table({"network": network}).get(heading) for network in networks]
    return geometric_mean(pd.Series([value for value in found if isinstance(value, float)]))


def turned(heading: str) -> float:
    """Return how many pairs of a network's algorithms are in the other order than natively, both clearly."""
    return _pairs(heading)[0]


def pairs(heading: str) -> float:
    """Return how many pairs are clearly apart on both."""
    return _pairs(heading)[1]


def carried(heading: str) -> float:
    """Return by how many per cent a device's times are mispredicted from native ones, in the median.

    They are native times by one factor, the median of ten points of the device, drawn a hundred times.
    """
    both = _beside(heading)
    ratios = (both["there"] / both["here"]).to_numpy()
    draw = np.random.default_rng(0)
    errors = []
    for _ in range(DRAWS):
        known = draw.choice(len(ratios), TEN, replace=False)
        rest = np.delete(ratios, known)
        errors.append(np.median(np.abs(np.median(ratios[known]) / rest - 1)))
    return 100 * float(np.mean(errors))


def _beside(heading: str) -> pd.DataFrame:
    """Return the times of equal points on this processor (``here``) and on a device (``there``)."""
    keys = ["model_name", "compression_name", "algorithm"]
    here, there = (
        only(_points(), hardware_name=device).set_index(keys)["latency_s"]
        for device in ("local_cpu", DEVICES[heading])
    )
    return pd.DataFrame({"here": here, "there": there}).dropna()


def _gains(network: str, compression: str) -> dict[str, Value]:
    return {
        heading: _over(_seconds(network, device), _seconds(network, device, compression))
        for heading, device in DEVICES.items()
    }


def _pairs(heading: str) -> tuple[int, int]:
    other, clear = 0, 0
    for _, group in _beside(heading).groupby(level=["model_name", "compression_name"]):
        for (_, one), (_, two) in itertools.combinations(group.iterrows(), 2):
            here, there = one["here"] / two["here"], one["there"] / two["there"]
            if min(max(here, 1 / here), max(there, 1 / there)) >= APART:
                clear += 1
                other += (here > 1) != (there > 1)
    return other, clear
