"""NVML: what an NVIDIA GPU tells of itself while it works."""

from __future__ import annotations

import importlib
import os
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

PACKAGE = "pynvml"
"""The module of the package ``nvidia-ml-py``, which the extra ``power`` installs."""
THROTTLING = {
    0x04: "a limit of its power",
    0x08: "the board slows it down",
    0x20: "the driver, for its temperature",
    0x40: "its temperature",
    0x80: "the board's power supply",
}
"""Bits of the reasons for which clocks are lower than asked for; others, as idleness, are no throttling."""
TEMPERATURE, SM_CLOCK, MEMORY_CLOCK = 0, 1, 2
"""NVML's numbers of the sensor on the die, and of two clocks."""

Value = TypeVar("Value")


@dataclass(frozen=True)
class NvmlGpu:
    """One GPU; what it does not tell is None."""

    library: Any
    handle: Any

    def energy_j(self) -> float | None:
        """Return the joules since the driver was loaded; None before Volta."""
        millijoules = self._asked(self.library.nvmlDeviceGetTotalEnergyConsumption)
        return None if millijoules is None else millijoules / 1e3

    def power_w(self) -> float | None:
        """Return the power of the whole card now."""
        milliwatts = self._asked(self.library.nvmlDeviceGetPowerUsage)
        return None if milliwatts is None else milliwatts / 1e3

    def temperature_c(self) -> float | None:
        """Return the temperature of the die."""
        celsius = self._asked(self.library.nvmlDeviceGetTemperature, TEMPERATURE)
        return None if celsius is None else float(celsius)

    def clocks_hz(self) -> tuple[float | None, float | None]:
        """Return the clocks of its processors and of its memory now."""
        read = self.library.nvmlDeviceGetClockInfo
        processors, memory = (self._asked(read, clock) for clock in (SM_CLOCK, MEMORY_CLOCK))
        return (
            None if processors is None else processors * 1e6,
            None if memory is None else memory * 1e6,
        )

    def throttled_by(self) -> list[str] | None:
        """Return what holds its clocks back now."""
        bits = self._asked(self.library.nvmlDeviceGetCurrentClocksThrottleReasons)
        return None if bits is None else [why for bit, why in THROTTLING.items() if bits & bit]

    def _asked(self, function: Callable[..., Value], *arguments: Any) -> Value | None:
        """Return what NVML answers, None where this GPU or driver does not know."""
        try:
            return function(self.handle, *arguments)
        except self.library.NVMLError:
            return None


def nvml_gpu() -> NvmlGpu | None:
    """Return the first GPU that CUDA_VISIBLE_DEVICES shows; None without one, without NVML, or in doubt."""
    try:
        library = importlib.import_module(PACKAGE)
    except ImportError:
        return None
    try:
        library.nvmlInit()
        handle = _first_handle(library, os.environ.get("CUDA_VISIBLE_DEVICES", ""))
    except library.NVMLError:
        return None
    return None if handle is None else NvmlGpu(library, handle)


def _first_handle(library: Any, visible: str) -> Any | None:
    """Return the GPU that programs run on.

    NVML does not know CUDA's numbers: with several GPUs they are its own only where CUDA_DEVICE_ORDER says
    so.
    """
    first = visible.partition(",")[0].strip()
    if first.startswith("GPU-"):
        return library.nvmlDeviceGetHandleByUUID(first)
    count = library.nvmlDeviceGetCount()
    if count == 1 and first in ("", "0"):
        return library.nvmlDeviceGetHandleByIndex(0)
    same = os.environ.get("CUDA_DEVICE_ORDER") == "PCI_BUS_ID"
    number = first or "0"
    if same and number.isdecimal() and int(number) < count:
        return library.nvmlDeviceGetHandleByIndex(int(number))
    return None
