"""``experiments/mirage-simulated``."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache

from benchmarks import mirage
from benchmarks.recomputed.kept import EXPERIMENTS, slow
from benchmarks.recomputed.markdown import Value
from dlas.prediction.learning.points import Points, read_points

HOME = EXPERIMENTS / "mirage-simulated"
QUANTITIES = {"time": mirage.TIME, "energy": mirage.ENERGY}


@cache
def _points(folder: str, target: str) -> Points:
    return read_points([HOME / folder], target, kernels=True)


@cache
def _kernels() -> dict[str, mirage.KernelScore]:
    return {score.name: score for score in mirage.kernel_scores(_points("rows", mirage.ENERGY))}


@cache
def _networks() -> dict[tuple[str, str], Mapping[str, float]]:
    drawn, networks = (_points(folder, mirage.ENERGY) for folder in ("rows", "networks"))
    scores = mirage.network_scores(drawn, networks)
    return {(network, target): errors for network, target, errors in scores}


@slow
def kernels(cells: Mapping[str, str]) -> dict[str, Value]:
    """Return the shares of a kind of kernels that are within 10 %."""
    found = _kernels()[cells["kernels"]]
    return {
        "number": found.number,
        "time within 10 %": 100 * found.time,
        "power within 10 %": 100 * found.power,
    }


@slow
def networks(cells: Mapping[str, str]) -> dict[str, Value]:
    """Return the mean errors of a network's time and energy, of trees on the clocks, and without clocks."""
    told: dict[str, Value] = {}
    for quantity, target in QUANTITIES.items():
        for heading, error in _networks()[cells["network"], target].items():
            told[f"{quantity}: {heading}"] = 100 * error
    return told


@slow
def error(quantity: str, heading: str) -> float:
    """Return the mean error over all networks, in per cent."""
    return 100 * _networks()["all", QUANTITIES[quantity]][heading]


@slow
def boards(cells: Mapping[str, str]) -> dict[str, Value]:
    """Return by how much errors on a board never measured are smaller with several others, least and most."""
    target = QUANTITIES[cells["quantity"]]
    gain = mirage.board_gain(_points("boards", target), target)
    assert gain is not None and gain.rmse is not None and gain.mae is not None
    shown = {"comparisons": float(gain.comparisons)}
    return {**shown, "RMSE": [100 * end for end in gain.rmse], "mean error": [100 * end for end in gain.mae]}
