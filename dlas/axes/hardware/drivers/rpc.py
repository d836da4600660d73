"""A board that `dlas serve` runs on: programs are compiled here, and sent, run and timed there."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field

from dlas.axes.hardware import board, targets
from dlas.axes.hardware.clock_options import ClockOptions
from dlas.axes.hardware.profile import Profile
from dlas.bench.measuring import sampling
from dlas.bench.remote.address import Address
from dlas.bench.remote.asking import ask
from dlas.bench.remote.board import Board, Remote
from dlas.errors import InputError, Unreachable
from dlas.stack import Backend, Images, MeasureSettings, Network, Program, ReadClocks, Target
from dlas.stack.compiler import THIS_MACHINE_ONLY
from dlas.stack.hardware import machine_name
from dlas.stack.types import Say

NO_ADDRESS = (
    "its profile does not say where it is: in a copy of it, add a table [rpc] with the host and the key of "
    "`dlas serve` on the board"
)


@dataclass(frozen=True)
class Rpc(Remote, ClockOptions):
    """A board described by its profile and reached through its server.

    References
    ----------
    DLAS paper, sections 4.5 and 6.6, where the big cores alone are used.
    """

    profile: Profile
    """Must hold a target; nothing of what to compile for is detected."""
    threads: Annotated[int, Field(ge=1)] | None = None
    """Worker threads, each on a core of its own; by default one for each of the cores."""
    cores: Literal["big", "little", "all"] | None = None
    """Which cores to use on a board with cores of two kinds, which its profile's facts ``cores`` and
    ``little_cores`` tell; by default the fastest.
    """
    records: Literal["instance", "profile"] = "instance"
    """Which trials of earlier searches count: those of this very board, known by its server's key and by the
    processor that it tells; or those of any board whose profile has the same title, target and facts, under
    whatever name and address. It is an option and not a line of ``[rpc]``, which says how a board is reached
    and changes no result: times of another board may choose another schedule, so this is part of a point's
    id, and a study can compare both.
    """

    def verify(self) -> None:
        """Refuse a profile that nothing can be compiled for, and more threads than cores.

        Raises
        ------
        InputError
            If TVM refuses the target or there is none, the profile does not tell the cores of
            two kinds that ``cores`` chooses from, or ``threads`` are more than the cores.
        """
        if not self.profile.target:
            raise InputError(f"profile {self.profile.name!r} has no [target], and a board needs one")
        if refusal := targets.refusal(self.profile.target):
            raise InputError(f"profile {self.profile.name!r}: [target]: {refusal}")
        known = {"cores", "little_cores"} & set(self.profile.facts)
        if self.cores and len(known) < 2:
            raise InputError(
                f"cores = {self.cores!r}, but profile {self.profile.name!r} does not tell of two kinds of "
                f"cores: it needs the facts cores and little_cores, and has {', '.join(known) or 'neither'}"
            )
        if self.threads is not None and self.threads > self._most_threads():
            raise InputError(f"threads = {self.threads}, but the profile gives {self._most_threads()} cores")

    @property
    def device(self) -> str:
        """The server's address, whose processors and GPU share a lock; without one, the board's name."""
        if server := self.profile.rpc:
            return f"{server.host}-{server.port}"
        return str(self.profile.facts.get("board", self.profile.name))

    @property
    def local(self) -> bool:
        """False: this machine's processors may work on other things while the board is used."""
        return False

    @property
    def most_programs(self) -> int:
        """One: the server gives one session at a time."""
        return 1

    def unsupported(self) -> str | None:
        """Return the profile's reason, or what it lacks to reach the board or to link for it."""
        server = self.profile.rpc
        if self.profile.unsupported or server is None:
            return self.profile.unsupported or NO_ADDRESS
        if server.compiler and shutil.which(server.compiler) is None:
            return f"the C compiler {server.compiler!r} that its profile names is not installed here"
        return self.clocks_unsupported()

    def refuses(self, compiler: type[Backend]) -> str | None:
        """Refuse runtimes that need their own libraries on the board."""
        return None if compiler.over_rpc else THIS_MACHINE_ONLY

    def recorded_as(self) -> dict[str, Any]:
        """Return the board's key and the processor that it tells; or what its profile says of any such board.

        Neither holds the address, which may be that of a tunnel.

        Raises
        ------
        Unreachable
            If the board has to tell its processor, and does not answer.
        """
        cores = {"cores": self.cores} if self.cores else {}
        if self.records == "profile":
            title, facts = self.profile.title, dict(self.profile.facts)
            return {"machine": title, "profile": {"title": title, "facts": facts}, **cores}
        told = {name: value for name, value in ask(self.address).machine.items() if value is not None}
        machine = machine_name({**self._described({}), **told})
        return {"machine": machine, "board": self.address.key, **cores}

    def target(self) -> Target:
        """Return the profile's target with the number of threads, and what links for it."""
        threads = self.threads or self._most_threads()
        description = dict(self.profile.target)
        if description["kind"] == "llvm":
            description["num-cores"] = threads
        return Target(description, threads, self.profile.rpc.compiler if self.profile.rpc else None)

    def describe(self) -> dict[str, Any]:
        """Return what the board tells of itself, where it answers, and the profile's facts."""
        return self._described(self._told())

    def load(self, compiler: Backend, folder: Path, network: Callable[[], Network]) -> Program:
        """Send a build to the board, and return the program that runs there.

        Raises
        ------
        Unsupported
            If the device cannot be used, or the compiler's programs run on this machine only.
        Unreachable
            If the board does not answer.
        """
        return board.load(self.reach(), compiler, folder, self.target())

    def reach(self) -> Board:
        """Open a session that uses the threads and the cores of the options.

        Raises
        ------
        Unsupported
            If the device cannot be used, or the board has no such cores.
        Unreachable
            If the board does not answer.
        """
        self.check_usable()
        return Board.reach(self.address, self.target().threads, self.cores or "fastest")

    def measure(
        self, program: Program, images: Images, settings: MeasureSettings, turn: Callable[[], None]
    ) -> dict[str, Any]:
        """Return what ``sampling.sample`` returns, by the board's own clock and counters.

        Raises
        ------
        Unsupported
            If the device cannot be used.
        Unreachable
            If the board is lost.
        """
        self.check_usable()
        instruments = None
        if isinstance(program, board.BoardProgram):
            instruments = board.instruments(program.board, self.target().on_gpu)
        run, timer = program.bind(images), program.timer(images)
        return sampling.sample(run, settings, turn, instruments, timer)

    def held(self, program: Program | None, say: Say) -> AbstractContextManager[ReadClocks]:
        """Return what sets the board's clocks in the program's session, and restores them."""
        assert isinstance(program, board.BoardProgram)
        return board.hold_clocks(program.board, self.requested, self.target().on_gpu, say)

    @property
    def address(self) -> Address:
        """Where the board is reached, with its token.

        Raises
        ------
        Unreachable
            If this machine has no token for it.
        """
        server = self.profile.rpc
        assert server is not None
        return server.address()

    def _described(self, told: dict[str, Any]) -> dict[str, Any]:
        """Return the device as rows hold it, with what the board tells of itself."""
        server = self.profile.rpc
        return {
            "name": self.profile.name,
            "title": self.profile.title,
            "threads": self.threads or self._most_threads(),
            **({"instance": server.key} if server else {}),
            **told,
            **self.profile.facts,
        }

    def _told(self) -> dict[str, Any]:
        """Return what the board tells of itself, nothing where it does not answer."""
        if self.unsupported():
            return {}
        try:
            return ask(self.address).machine
        except Unreachable:
            return {}

    def _most_threads(self) -> int:
        """Return the number of cores of the chosen kind, by the facts or by the target."""
        facts, target = self.profile.facts, self.profile.target
        big, little = (int(facts.get(name, 0)) for name in ("cores", "little_cores"))
        if self.cores:
            return {"big": big, "little": little, "all": big + little}[self.cores]
        return int(target.get("num-cores") or target.get("host", {}).get("num-cores") or 1)
