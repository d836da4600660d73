"""A device on another machine, which this version compiles for but cannot run programs on."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, Any

from pydantic import Field

from dlas.errors import InputError, Unsupported
from dlas.hardware.profile import Profile
from dlas.stack import Hardware, Images, MeasureSettings, Program, Target


@dataclass(frozen=True)
class Remote(Hardware):
    """A board described by its profile.

    Parameters
    ----------
    profile : Profile
        Must hold a target, as nothing can be detected.
    threads : int, optional
        Worker threads; by default one for each core of the profile.
    """

    profile: Profile
    threads: Annotated[int, Field(ge=1)] | None = None

    def verify(self) -> None:
        """Refuse a profile without a target, and more threads than cores.

        Raises
        ------
        InputError
            If the profile has no target, or fewer cores than ``threads``.
        """
        if not self.profile.target:
            raise InputError(f"profile {self.profile.name!r} has no [target], and a remote device needs one")
        if self.threads is not None and self.threads > self._cores():
            raise InputError(f"threads = {self.threads}, but the profile gives {self._cores()} cores")

    @property
    def device(self) -> str:
        """The board's name if the profile gives one: its processors and its GPU share a lock."""
        return str(self.profile.facts.get("board", self.profile.name))

    @property
    def local(self) -> bool:
        """False: this machine's processors are idle while the device is used."""
        return False

    def unsupported(self) -> str | None:
        """Return the profile's reason, or that no driver sends work to another machine."""
        return self.profile.unsupported or f"{self.profile.name}: this version has no transport to a device"

    def target(self) -> Target:
        """Return the profile's target with the number of threads."""
        threads = self.threads or self._cores()
        description = dict(self.profile.target)
        if description["kind"] == "llvm":
            description["num-cores"] = threads
        return Target(description, threads)

    def describe(self) -> dict[str, Any]:
        """Return the profile's facts."""
        return {"name": self.profile.name, "title": self.profile.title, **self.profile.facts}

    def measure(
        self, program: Program, images: Images, settings: MeasureSettings, turn: Callable[[], None]
    ) -> dict[str, Any]:
        """Raise the reason why nothing can be measured.

        Raises
        ------
        Unsupported
            Always.
        """
        raise Unsupported(self.unsupported())

    def _cores(self) -> int:
        target = self.profile.target
        return int(target.get("num-cores") or target.get("host", {}).get("num-cores") or 1)
