"""``experiments/devices``."""

from __future__ import annotations

import itertools
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import pandas as pd

import dlas
from benchmarks.cells import drawn
from benchmarks.recomputed.kept import geometric_mean, lines, only, points
from benchmarks.recomputed.markdown import Value
from dlas.analysis.matching import timed
from dlas.prediction.learning.points import read_points
from dlas.prediction.predictors.mixture import Mixture
from dlas.sweep.rows.results import Row

DEVICES = {"native": "local_cpu", "wasmtime": "wasmtime", "Node": "node", "Chromium": "chromium"}
"""Headings of columns, with the devices that they stand for."""
TYPES = {"float32": "none", "float32, 90 % zeros": "weight_pruning", "float16": "float16", "int8": "int8"}
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


def right(cells: Mapping[str, str]) -> dict[str, Value]:
    """Return the largest error, in millionths, of an algorithm's programs of all networks on each device.

    It stands beside the number of networks, and the mean seconds that a build for WebAssembly takes.
    """
    kind, algorithm = TYPES[cells["type"]], cells["algorithm"].strip("`")
    rows = [
        row
        for row in (*lines("devices/rows"), *lines("devices/networks"))
        if (row.compression["name"], row.algorithm["name"]) == (kind, algorithm) and row.error is not None
    ]
    builds = [row.seconds.get("build") for row in rows if row.hardware["name"] != "local_cpu"]
    return {
        "networks": len({row.model["name"] for row in rows}),
        **{heading: _largest_error(rows, device) for heading, device in DEVICES.items()},
        "build, s": float(np.mean([seconds for seconds in builds if seconds])),
    }


def _largest_error(rows: Sequence[Row], device: str) -> float | None:
    """Return the largest error on a device in millionths, None where nothing ran."""
    errors = [row.error for row in rows if row.hardware["name"] == device and row.error is not None]
    return 1e6 * max(errors) if errors else None


def ahead(heading: str, compression: str, algorithm: str) -> float:
    """Return how many networks an algorithm is the fastest one for."""
    networks = sorted(_points()["model_name"].unique())
    found = [_fastest(network, DEVICES[heading], compression) for network in networks]
    return sum(row is not None and bool(row["algorithm_name"] == algorithm) for row in found)


def correlation(heading: str) -> float:
    """Return the rank correlation of multiply-adds and latency of the fastest dense programs in float32."""
    networks = sorted(_points()["model_name"].unique())
    rows = pd.DataFrame([_fastest(network, DEVICES[heading], "none") for network in networks])
    return float(rows["macs"].corr(rows["latency_s"], method="spearman"))


def promised(heading: str) -> float:
    """Return the share, in per cent, of the promised speed-up that 90 % of zeros bring, in the mean."""
    networks = sorted(_points()["model_name"].unique())
    rows = [_fastest(network, DEVICES[heading], "weight_pruning") for network in networks]
    shares = [
        float(sparse({"network": row["model_name"]})[heading]) * row["effective_macs"] / row["macs"]  # type: ignore[arg-type]
        for row in rows
        if row is not None
    ]
    return 100 * geometric_mean(pd.Series(shares))


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


def mixed(heading: str) -> float:
    """Return by how many per cent ``mixture`` mispredicts a device's times, in the median.

    As in :func:`carried`, ten points of the device are known. It weighs their native times and their
    multiply-adds by kind of arithmetic.
    """
    both = _beside(heading)
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        rows, base = _told(both, "here", folder), folder / "base"
        dlas.fit("additive", rows, target="latency_s", hold_out="model/2", to=base, options={"costs": "own"})
        mixture = Mixture(str(base))
        points = read_points([_told(both, "there", folder)], "latency_s")
        samples = points.samples(mixture, "latency_s", [""] * len(points))
        return 100 * float(np.mean([drawn(mixture, samples, seed, folder)[1] for seed in range(DRAWS)]))


def _told(both: pd.DataFrame, column: str, folder: Path) -> Path:
    """Return a folder with the rows of a column, each told by features of its own."""
    table = both.reset_index()
    kinds = pd.get_dummies(table["compression_name"]).mul(table["effective_macs"], axis=0)
    rows = kinds.rename(columns=lambda kind: f"feature.{kind}_macs")
    rows["feature.native"], rows["feature.network"] = table["here"], 1
    rows["model.point"], rows["latency_s"] = table.index, table[column]
    rows["machine"] = rows["hardware_name"] = column
    rows["model_name"], rows["dataset_name"], rows["compiler_name"] = "point", "random", "hand"
    rows.to_csv(folder / f"{column}.csv", index=False)
    dlas.import_rows(folder / f"{column}.csv", folder / column)
    return folder / column


def _beside(heading: str) -> pd.DataFrame:
    """Return the times of equal points on this processor (``here``) and on a device (``there``)."""
    keys = ["model_name", "compression_name", "algorithm"]
    here, there = (
        only(_points(), hardware_name=device).set_index(keys) for device in ("local_cpu", DEVICES[heading])
    )
    columns = {
        "here": here["latency_s"],
        "there": there["latency_s"],
        "effective_macs": here["effective_macs"],
    }
    return pd.DataFrame(columns).dropna()


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
