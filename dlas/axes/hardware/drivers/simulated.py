"""A simulated board: nothing runs, and a law tells times and energies."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Any

import numpy as np
from pydantic import Field

from dlas.axes.hardware.profile import Profile
from dlas.axes.hardware.simulation.clocks import STEPS, SimulatedClocks
from dlas.axes.hardware.simulation.law import BOARDS, board_factors
from dlas.axes.hardware.simulation.runs import simulate
from dlas.stack import Layer, MeasureSettings, SimulatedHardware, Target

Step = Annotated[float, Field(gt=0, allow_inf_nan=False)]


@dataclass(frozen=True)
class Simulated(SimulatedHardware):
    """One of thirteen boards that exist nowhere, whose times and powers follow a law.

    They are those of a Jetson AGX's clocks in kind only. Rows of them are marked as simulated.

    References
    ----------
    MIRAGE, sections 2.1 and 3.1.
    """

    profile: Profile
    cpu_hz: Step | None = None
    """Clock of the processors, one of 29 steps from 115.2 MHz to 2.265 GHz; by default the highest."""
    gpu_hz: Step | None = None
    """Clock of the GPU, one of 14 steps from 114.75 MHz to 1.377 GHz; by default the highest. It is throttled
    below that where a kernel's power exceeds the cap.
    """
    memory_hz: Step | None = None
    """Clock of the memory, one of 9 steps from 204 MHz to 2.133 GHz; by default the highest."""
    board: Annotated[int, Field(ge=0, lt=BOARDS)] = 0
    """Which of the boards: they differ by up to 30 % in power, and by up to 10 % in time at equal clocks."""

    def verify(self) -> None:
        """Refuse a clock that is no step.

        Raises
        ------
        InputError
            Names the two steps next to it.
        """
        self.clocks.verify()

    @property
    def clocks(self) -> SimulatedClocks:
        """The clocks that were asked for, the highest where none was."""
        asked = {name: getattr(self, name) for name in STEPS}
        return SimulatedClocks(**{name: asked[name] or steps[-1] for name, steps in STEPS.items()})

    @property
    def device(self) -> str:
        """The name of a lock that nothing else needs."""
        return f"simulated-{self.board}"

    def unsupported(self) -> str | None:
        """Return the profile's reason, if it has one."""
        return self.profile.unsupported

    def target(self) -> Target:
        """Return the profile's target, for compilers that tell their kernels by it."""
        return Target(dict(self.profile.target), 1)

    def describe(self) -> dict[str, Any]:
        """Return the profile's facts, the clocks, the board, and that all of it is simulated."""
        return {
            "name": self.profile.name,
            "title": self.profile.title,
            "simulated": True,
            "instance": f"board{self.board}",
            "threads": 1,
            **vars(self.clocks),
            **self.profile.facts,
        }

    def simulate(self, kernels: Sequence[Layer], settings: MeasureSettings) -> dict[str, Any]:
        """Return what the law says of the kernels at the clocks, with noise that differs each time."""
        return simulate(kernels, self.clocks, board_factors(self.board), settings, np.random.default_rng())
