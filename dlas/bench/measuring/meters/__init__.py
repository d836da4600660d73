"""Meters of energy: counters of processors, and sensors of boards and GPUs, one file a sensor.

Zeus (zeus-ml) is not among them: of what runs here it reads the same three sensors, by the same files and
by NVML; what it has beside them, GPUs of AMD and of Apple, runs no program of this package.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from dlas.bench.measuring.meters import ina3221, nvml, rapl
from dlas.bench.measuring.meters.meter import Meter

SENSORS: tuple[Callable[[Path, bool], Meter | None], ...] = (ina3221.find, nvml.find, rapl.find)
"""What finds each sensor, the widest first: a module's has processors and GPU."""


def find_meter(root: Path, on_gpu: bool) -> Meter | None:
    """Return the machine's meter, None where there is none that may be read.

    Parameters
    ----------
    root : Path
        The folder that holds sys.
    on_gpu : bool
        Whether a GPU's energy must be in it.
    """
    found = (find(root, on_gpu) for find in SENSORS)
    return next((meter for meter in found if meter is not None), None)
