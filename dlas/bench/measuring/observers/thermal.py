"""Temperature, and whether something held the clocks back."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any, Protocol, Self

from dlas.bench.measuring.machine import Machine
from dlas.bench.measuring.nvml import NvmlGpu, nvml_gpu
from dlas.bench.measuring.observers.observer import Observer, Slice
from dlas.bench.measuring.throttling import MachineHeat, ThermalState

NAME = "thermal"


class HeatSensor(Protocol):
    """What tells temperature and throttling."""

    def start(self) -> None:
        """Begin to count."""

    def read(self) -> ThermalState:
        """Return the temperature now, and what throttled the device now or since the start."""


class GpuHeat:
    """Temperature and throttling of a GPU.

    Parameters
    ----------
    gpu : NvmlGpu
    """

    def __init__(self, gpu: NvmlGpu) -> None:
        self._gpu = gpu

    def start(self) -> None:
        """Do nothing: the GPU tells what holds now."""

    def read(self) -> ThermalState:
        """Return what it tells now."""
        reasons = self._gpu.throttled_by()
        return ThermalState(
            self._gpu.temperature_c(),
            None if reasons is None else bool(reasons),
            f"GPU held back by {', '.join(reasons)}" if reasons else None,
        )


class Thermal(Observer):
    """Looks before, after and once a second in between.

    Parameters
    ----------
    sensor : HeatSensor
    """

    every_s = 1.0

    def __init__(self, sensor: HeatSensor) -> None:
        self._sensor = sensor
        self._seen: list[ThermalState] = []

    @classmethod
    def here(cls, machine: Machine, on_gpu: bool) -> Self | None:
        """Return an observer of the GPU by NVML, or else of the machine, which a GPU may be a part of."""
        gpu = nvml_gpu() if on_gpu else None
        if gpu is not None:
            return cls(GpuHeat(gpu))
        heat = MachineHeat(machine.root)
        return cls(heat) if heat.tells else None

    def before(self) -> None:
        """Look for the first time."""
        self._seen = []
        self._sensor.start()
        self.during()

    def during(self) -> None:
        """Look once."""
        self._seen.append(self._sensor.read())

    def after(self) -> dict[str, Any]:
        """Return the worst :class:`~dlas.bench.measuring.throttling.ThermalState` as a mapping."""
        self.during()
        return asdict(worst(self._seen))

    @classmethod
    def fields(cls, slices: Sequence[Slice]) -> dict[str, Any]:
        """Return ``temperature_c``, ``throttled`` and ``throttled_reason``."""
        found = worst([ThermalState(**piece.seen[NAME]) for piece in slices if NAME in piece.seen])
        return {
            "temperature_c": found.temperature_c,
            "throttled": found.throttled,
            "throttled_reason": found.reason,
        }


def worst(states: Sequence[ThermalState]) -> ThermalState:
    """Return the highest temperature, and whether any of them was throttled."""
    temperatures = [state.temperature_c for state in states if state.temperature_c is not None]
    told = [state.throttled for state in states if state.throttled is not None]
    reasons = [state.reason for state in states if state.reason]
    return ThermalState(
        max(temperatures, default=None), any(told) if told else None, reasons[0] if reasons else None
    )
