"""Runs of a network on the simulated board: what the law says, as an instrument with noise would tell it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from dlas.axes.hardware.simulation.clocks import SimulatedClocks
from dlas.axes.hardware.simulation.law import (
    NOISE,
    BoardFactors,
    cost,
    run_seconds,
    waiting_watts,
)
from dlas.axes.hardware.simulation.work import works_of
from dlas.stack import Layer, MeasureSettings
from dlas.stack.types import Floats


def simulate(
    kernels: Sequence[Layer],
    clocks: SimulatedClocks,
    board: BoardFactors,
    settings: MeasureSettings,
    rng: np.random.Generator,
) -> dict[str, Any]:
    """Return what a measurement would tell of a network with these kernels.

    Returns
    -------
    dict
        Fields of a row: the samples ``latency_s``, ``energy_j`` and ``power_w``, both means; and
        ``timed_layers``, the kernels with theirs.
    """
    costs = [cost(work, clocks, board) for work in works_of(kernels)]
    seconds, joules = np.array([[each.seconds, each.joules] for each in costs]).reshape(-1, 2).T
    waited_s = run_seconds(clocks, board)
    total_s = float(seconds.sum()) + waited_s
    power_w = (float(joules.sum()) + waited_s * waiting_watts(clocks, board)) / total_s
    samples = noisy(np.full(settings.repeats, total_s), rng)
    read_w = float(noisy(np.full(settings.repeats, power_w), rng).mean())
    return {
        "latency_s": samples.tolist(),
        "calls_per_sample": 1,
        "bound": "repeats",
        "noisy": False,
        "energy_j": read_w * float(samples.mean()),
        "power_w": read_w,
        "timed_layers": _timed(kernels, seconds, joules, settings.layer_repeats, rng),
    }


def noisy(values: Floats, rng: np.random.Generator) -> Floats:
    """Return values as they are read: each times a factor of its own, log-normal around 1."""
    return np.asarray(values * np.exp(rng.normal(0.0, NOISE, np.shape(values))))


def _timed(
    kernels: Sequence[Layer], seconds: Floats, joules: Floats, repeats: int, rng: np.random.Generator
) -> list[Layer] | None:
    """Return the kernels with median times and mean energies over so many runs; None without runs."""
    if not repeats:
        return None
    times = noisy(np.tile(seconds, (repeats, 1)), rng)
    energies = times * noisy(np.tile(joules / seconds, (repeats, 1)), rng)
    told = zip(kernels, np.median(times, axis=0).tolist(), energies.mean(axis=0).tolist(), strict=True)
    return [{**kernel, "latency_s": own_s, "energy_j": own_j} for kernel, own_s, own_j in told]
