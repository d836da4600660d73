"""Clocks that a user asks for, checked against what the device has."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

from dlas.bench.clocks.domain import ClockDomain, ClockSteps
from dlas.bench.clocks.nvpmodel import PowerMode
from dlas.errors import InputError, Unsupported

HONOURED = 0.02
"""The relative difference up to which a clock is the one that was asked for."""


@dataclass(frozen=True)
class ClockRequest:
    """The clocks to set; None leaves one as it is."""

    cpu_hz: float | None = None
    gpu_hz: float | None = None
    memory_hz: float | None = None

    def by_domain(self) -> dict[str, float]:
        """Return what is asked for by the name of its domain."""
        asked = {"cpu": self.cpu_hz, "gpu": self.gpu_hz, "memory": self.memory_hz}
        return {name: hz for name, hz in asked.items() if hz is not None}

    def check(self, domains: Mapping[str, ClockDomain], mode: PowerMode | None = None) -> None:
        """Check that the device can be set to it.

        Parameters
        ----------
        domains : mapping
            The clocks of the device by name.
        mode : PowerMode, optional
            The power mode that it is in.

        Raises
        ------
        InputError
            If a clock is no step of the device.
        Unsupported
            If the device lacks a domain, or its power mode does not let it run so fast.
        """
        for name, hz in self.by_domain().items():
            if not (math.isfinite(hz) and hz > 0):
                raise InputError(f"`{name}_hz={hz!r}` must be a positive number of Hz")
            if name not in domains:
                there = ", ".join(f"{each}_hz" for each in domains) or "none"
                raise Unsupported(
                    f"`{name}_hz={hz:g}`: the device has no such clock to set (there are: {there})"
                )
            _check_step(name, hz, domains[name].steps_hz())
            cap = math.inf if mode is None else mode.caps_hz.get(name, math.inf)
            # A mode's file has round numbers; the kernel takes the step nearest to them.
            if mode is not None and hz > cap * (1 + HONOURED):
                raise Unsupported(
                    f"`{name}_hz={hz:.10g}`: the power mode {mode.name} allows up to {cap:.10g}; "
                    "nvpmodel -m changes it"
                )


def _check_step(name: str, hz: float, steps: ClockSteps) -> None:
    """Check that a clock is a step.

    Raises
    ------
    InputError
    """
    if steps.has(hz):
        return
    if not steps.hz:
        raise InputError(f"`{name}_hz={hz:g}`: the cores in use have no step in common")
    if steps.between:
        raise InputError(f"`{name}_hz={hz:g}` must be between {steps.hz[0]:.10g} and {steps.hz[-1]:.10g}")
    nearest = " and ".join(f"{step:.10g}" for step in steps.nearest(hz))
    raise InputError(
        f"`{name}_hz={hz:.10g}` is none of the {len(steps.hz)} steps of the device "
        f"(the nearest are {nearest})"
    )
