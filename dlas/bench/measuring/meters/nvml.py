"""NVML: the energy counter of an NVIDIA GPU, or its power where it keeps no counter."""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path

from dlas.bench.measuring.meters.counters import EnergyCounters
from dlas.bench.measuring.meters.meter import Meter
from dlas.bench.measuring.meters.powers import PowerMeter
from dlas.bench.measuring.nvml import NvmlGpu, nvml_gpu

NAME = "nvml"
PERIOD_S = 0.1
"""Drivers have new values every 20 to 100 ms, by the GPU's generation."""


def find(root: Path, on_gpu: bool) -> Meter | None:
    """Return a meter of the GPU with its memory, None of processors or where NVML tells none."""
    gpu = nvml_gpu() if on_gpu else None
    if gpu is None:
        return None
    if gpu.energy_j() is not None:
        return EnergyCounters(NAME, [GpuEnergy(gpu)], PERIOD_S)
    return PowerMeter(NAME, [GpuPower(gpu)], [NAME], PERIOD_S) if gpu.power_w() is not None else None


@dataclass(frozen=True)
class GpuEnergy:
    """What the GPU used since its driver was loaded."""

    gpu: NvmlGpu
    label: str = NAME
    full_j: float = math.inf

    def joules(self) -> float | None:
        """Return its value now, None where it cannot be read."""
        return self.gpu.energy_j()


@dataclass(frozen=True)
class GpuPower:
    """What the GPU takes now."""

    gpu: NvmlGpu
    label: str = NAME

    def watts(self) -> float | None:
        """Return the power now, None where it cannot be read."""
        return self.gpu.power_w()
