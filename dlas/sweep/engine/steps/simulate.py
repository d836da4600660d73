"""Ask a simulated device what a point's kernels take, in place of building and timing a program."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, cast

from dlas.bench.processes.interface import Channel
from dlas.bench.store.cache import Cache
from dlas.errors import Unsupported
from dlas.stack import TRAINING, MeasureSettings, SimulatedHardware
from dlas.sweep.engine.steps.artifacts import load_verified
from dlas.sweep.engine.steps.kernels import KERNELS_FILE
from dlas.sweep.study.point import Point

NOTE = "simulated: nothing was built, checked or run, and a law tells times and energies"
MEMORY_NOTE = "not measured: the device is simulated"


def run(
    content: dict[str, Any],
    root: str,
    kernels_key: str,
    settings: dict[str, Any],
    channel: Channel,
    slices: dict[str, Any] | None = None,
) -> dict[str, Any]:
    """Return what a measurement returns, as the device's law tells it.

    Parameters
    ----------
    slices : dict, optional
        Not used: there is nothing to go on with.

    Raises
    ------
    Unsupported
        If the point is one of training.
    """
    cache, point = Cache(Path(root)), Point.of(content)
    if point.task == TRAINING:
        raise Unsupported("a simulated device runs inference only")
    device = cast(SimulatedHardware, point.device)
    folder = load_verified(cache, "kernels", kernels_key).folder
    kernels = json.loads((folder / KERNELS_FILE).read_text(encoding="utf-8"))
    return {
        **device.simulate(kernels, MeasureSettings(**settings)),
        "device": device.describe(),
        "simulation_note": NOTE,
        "memory_note": MEMORY_NOTE,
    }
