"""Clocks as options of a device."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Collection, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, ClassVar

from pydantic import Field

from dlas.axes.hardware.profile import Profile
from dlas.bench.clocks.finding import find_clocks
from dlas.bench.clocks.holding import hold
from dlas.bench.clocks.nvpmodel import find_power_mode
from dlas.bench.clocks.request import ClockRequest
from dlas.errors import Unsupported
from dlas.stack import Hardware, Program, ReadClocks
from dlas.stack.types import Say

Hertz = Annotated[float, Field(gt=0, allow_inf_nan=False)]
NOT_SETTABLE = (
    "its profile does not let clocks be set: in a copy of it, add a table [clocks] with settable = true"
)


@dataclass(frozen=True, kw_only=True)
class ClockOptions(Hardware):
    """A device whose clocks a study may set, where its profile lets it.

    References
    ----------
    MIRAGE, section 2.1: time and power over some 3,600 settings of three clocks.
    """

    profile: Profile
    cpu_hz: Hertz | None = None
    """Clock of the processors that the program uses, one of the steps that the system tells; by default it is
    left as it is.
    """
    gpu_hz: Hertz | None = None
    """The same of the GPU."""
    memory_hz: Hertz | None = None
    """The same of the memory: of the board's, or of the card's where the GPU has its own."""

    @property
    def requested(self) -> ClockRequest:
        """The clocks that the options ask for."""
        return ClockRequest(self.cpu_hz, self.gpu_hz, self.memory_hz)

    def hold_clocks(self, program: Program | None, say: Say) -> AbstractContextManager[ReadClocks]:
        """Return what sets the clocks and restores them."""
        return self.held(program, say) if self.requested.by_domain() else nullcontext(dict)

    @abstractmethod
    def held(self, program: Program | None, say: Say) -> AbstractContextManager[ReadClocks]:
        """Return the same for options that ask for some."""

    def clocks_unsupported(self) -> str | None:
        """Return why the clocks that were asked for cannot be set, or None."""
        asked = self.requested.by_domain() and not self.profile.clocks.settable
        return NOT_SETTABLE if asked else None


@dataclass(frozen=True, kw_only=True)
class ClocksHere(ClockOptions):
    """A device of this machine, with its clocks."""

    on_gpu: ClassVar[bool] = False

    @abstractmethod
    def processors(self) -> Collection[int]:
        """Return the logical processors that programs use."""

    def verify(self) -> None:
        """Refuse a clock that is no step of the device.

        Raises
        ------
        InputError
            Names the two steps next to it.
        """
        self._refused()

    def clocks_unsupported(self) -> str | None:
        """Return why the clocks that were asked for cannot be set, or None."""
        return super().clocks_unsupported() or self._refused()

    @contextmanager
    def held(self, program: Program | None, say: Say) -> Iterator[ReadClocks]:
        """Set the clocks and restore them."""
        root = self._root
        domains = find_clocks(self.processors(), self.on_gpu, root)
        mode = find_power_mode(root)
        with hold(self.requested, domains, self.device, say, root=root, mode=mode) as clocks:
            yield clocks.contents

    @property
    def _root(self) -> Path:
        return Path(self.profile.clocks.root)

    def _refused(self) -> str | None:
        """Return that the device has no such clock, or that its power mode caps it.

        Raises
        ------
        InputError
            If a clock is no step.
        """
        if not self.requested.by_domain():
            return None
        try:
            domains = find_clocks(self.processors(), self.on_gpu, self._root)
            self.requested.check(domains, find_power_mode(self._root))
        except Unsupported as refusal:
            return str(refusal)
        return None
