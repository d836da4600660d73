"""Features of devices, by which one predictor of kernels tells the devices apart that it was fitted to.

References
----------
MIRAGE, section 4.2: kernels and clocks in one table.  Beyond the paper are threads, cores, and which compiler
and algorithm made a kernel.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd

from dlas.stack.predictor import OF_DEVICE
from dlas.stack.types import Floats

Facts = Mapping[str, float]
"""What a row tells of its device, by name: those of :data:`FACTS` that are known."""
CLOCKS = ("cpu_hz", "gpu_hz", "memory_hz")
"""The clocks that a device ran at: those observed, else those that were set."""
FACTS = ("physical_cores", "clock_max_hz", "gpu_clock_hz", "gpu_memory_clock_hz", *CLOCKS)
"""Numbers of a device that differ between machines, or that its owner sets."""
NAMED = ("compiler", "algorithm")
"""Columns of a point whose values have a column each."""


def facts_of(device: object) -> Facts:
    """Return what is known of a device.

    Parameters
    ----------
    device : mapping
        As :class:`dlas.sweep.rows.schema.Device`, or any value read from a row.
    """
    told = device if isinstance(device, Mapping) else {}
    return {name: float(told[name]) for name in FACTS if isinstance(told.get(name), int | float)}


def device_features(frame: pd.DataFrame, facts: Sequence[Facts]) -> tuple[tuple[str, ...], Floats]:
    """Return the features of points' devices.

    Parameters
    ----------
    frame : DataFrame
        The points, with their ``threads``, ``compiler`` and ``algorithm``.
    facts : sequence of mapping, length n
        Of each point's device.

    Returns
    -------
    names : tuple of str
        They begin with one of :data:`dlas.stack.predictor.OF_DEVICE`.
    values : array [n, names]
        0 where a value is unknown; of a compiler or an algorithm 1 in its own column.
    """
    numbers, *named = OF_DEVICE
    columns: dict[str, list[float]] = {
        f"{numbers}{name}": [each.get(name, 0.0) for each in facts] for name in FACTS
    }
    columns[f"{numbers}threads"] = [0.0 if pd.isna(count) else float(count) for count in frame["threads"]]
    for axis, beginning in zip(NAMED, named, strict=True):
        values = ["" if pd.isna(value) else str(value) for value in frame[axis]]
        for name in sorted(set(values)):
            columns[f"{beginning}{name}"] = [float(value == name) for value in values]
    table = np.array(list(columns.values()), dtype=np.float64).reshape(len(columns), len(frame))
    return tuple(columns), table.T
