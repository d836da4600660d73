"""Clocks of NVIDIA's GPUs, which NVML locks."""

from __future__ import annotations

from typing import Any

from dlas.bench.clocks.domain import ClockDomain, ClockSteps
from dlas.bench.clocks.guard import ClockSetting
from dlas.bench.measuring.nvml import MEMORY_CLOCK, SM_CLOCK, NvmlGpu, nvml_gpu

CLOCKS = {"gpu": ("Gpu", SM_CLOCK), "memory": ("Memory", MEMORY_CLOCK)}
"""By domain, what its functions are called by, and the number of the clock."""


class NvmlClock(ClockDomain):
    """The clock of a GPU's processors or of its memory.

    NVML does not tell what is locked: what is put back is no lock, even where somebody had set one before.

    Parameters
    ----------
    gpu : NvmlGpu
    name : str
        ``gpu`` or ``memory``.
    """

    def __init__(self, gpu: NvmlGpu, name: str) -> None:
        self.name = name
        self._library, self._handle = gpu.library, gpu.handle
        self._called, self._number = CLOCKS[name]

    def steps_hz(self) -> ClockSteps:
        """Return the supported clocks; those of the processors at the memory's highest clock."""
        try:
            mhz = list(self._library.nvmlDeviceGetSupportedMemoryClocks(self._handle))
            if self.name == "gpu":
                mhz = self._library.nvmlDeviceGetSupportedGraphicsClocks(self._handle, max(mhz))
        except self._library.NVMLError:
            return ClockSteps(())
        return ClockSteps.of(1e6 * each for each in mhz)

    def plan(self, hz: float) -> list[ClockSetting]:
        """Return the lock, which is reset afterwards."""
        uuid: Any = self._library.nvmlDeviceGetUUID(self._handle)
        place = f"{uuid.decode() if isinstance(uuid, bytes) else uuid}/{self._called}"
        return [ClockSetting("nvml", place, "", str(round(hz / 1e6)))]

    def applied_hz(self) -> tuple[float, ...]:
        """Return nothing: NVML does not tell what is locked."""
        return ()

    def observed_hz(self) -> tuple[float, ...]:
        """Return the clock now; an idle GPU may run slower than it is locked at."""
        try:
            mhz: int = self._library.nvmlDeviceGetClockInfo(self._handle, self._number)
        except self._library.NVMLError:
            return ()
        return (1e6 * mhz,)


def find_nvml(name: str, gpu: NvmlGpu | None = None) -> NvmlClock | None:
    """Return a clock of a GPU, by default the first one; None where NVML lists no steps."""
    gpu = gpu or nvml_gpu()
    clock = None if gpu is None else NvmlClock(gpu, name)
    return clock if clock and clock.steps_hz().hz else None
