"""The clocks of the simulated board: 29 steps of its processors, 14 of its GPU, 9 of its memory."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dlas.errors import InputError

ROUNDED_HZ = 50e3
"""Steps are multiples of this."""


def _steps(least: float, most: float, number: int) -> tuple[float, ...]:
    """Return so many steps, as far apart, as round numbers of Hz."""
    return tuple(float(step) for step in np.round(np.linspace(least, most, number) / ROUNDED_HZ) * ROUNDED_HZ)


CPU_HZ = _steps(115.2e6, 2.265e9, 29)
GPU_HZ = _steps(114.75e6, 1.377e9, 14)
MEMORY_HZ = _steps(204e6, 2.133e9, 9)
STEPS = {"cpu_hz": CPU_HZ, "gpu_hz": GPU_HZ, "memory_hz": MEMORY_HZ}
"""Those of ``hardware_profiles/jetson_agx.toml``, by the option's name; ascending."""


@dataclass(frozen=True)
class SimulatedClocks:
    """One of the 3,654 settings."""

    cpu_hz: float
    gpu_hz: float
    memory_hz: float

    @classmethod
    def highest(cls) -> SimulatedClocks:
        """Return the highest step of each."""
        return cls(CPU_HZ[-1], GPU_HZ[-1], MEMORY_HZ[-1])

    def verify(self) -> None:
        """Refuse a clock that is no step.

        Raises
        ------
        InputError
            Names the clock and the two steps next to it.
        """
        for name, steps in STEPS.items():
            if (value := getattr(self, name)) not in steps:
                nearest = sorted(sorted(steps, key=lambda step: abs(step - value))[:2])
                told = " and ".join(f"{step:.12g}" for step in nearest)
                raise InputError(
                    f"{name} = {value:.12g} is no step of the simulated board; the nearest two of its "
                    f"{len(steps)} are {told}"
                )
