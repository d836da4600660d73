"""Candidates on a board: libraries are built here, and sent, checked and timed there.

The reference output comes from the board too.  Its minimal schedule has to run there in any case, for
the time that bounds candidates; and a kernel for another processor, or for a GPU, may not run here.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import tvm

from dlas.bench.measuring.on_board import DIFFERENCE, PIN_THREADS
from dlas.bench.processes.workers import Handlers, Reply, RequestFailed, last_line
from dlas.bench.remote.board import Board, Remote
from dlas.bench.remote.connection import reaching
from dlas.errors import SessionEnded, SessionTimeout, Unreachable, Unsupported
from dlas.lowering.target import write_library
from dlas.lowering.tuning.candidates import CandidateRunner, compiled, minimal, scheduled
from dlas.lowering.tuning.workload import MAIN, Workload
from dlas.stack import Target

MINIMAL = "minimal"
LOST = "lost"
REFUSED = "refused"
"""Failures that are no candidate's: the board is lost, or cannot be used as the profile says."""
KINDS: dict[type[Exception], str] = {
    SessionTimeout: "hang",
    SessionEnded: "crash",
    Unreachable: LOST,
    Unsupported: REFUSED,
}
"""What an error says of a candidate; the first class that fits counts."""


def library(folder: Path, name: int | str) -> Path:
    """Return where the library of a candidate is, or that of the minimal schedule."""
    return folder / f"candidate-{name}.so"


class LibraryBuilder:
    """Builds the candidates of some workloads into libraries for a board.

    Parameters
    ----------
    workloads : sequence of Workload
    target : Target
        Of the board.
    folder : Path
        Where the libraries are written.
    """

    def __init__(self, workloads: Sequence[Workload], target: Target, folder: Path) -> None:
        self.workloads, self.target, self.folder = workloads, target, folder

    def handlers(self) -> Handlers:
        """Return the handlers of messages."""
        return {"build": self.build, "minimal": self.minimal}

    def build(self, workload: int, candidate: dict[str, Any], number: int) -> Reply:
        """Build a candidate; return its trace if it consists of decisions."""
        try:
            function, trace = scheduled(self.workloads[workload], candidate, self.target)
            self._write(function, number)
        except Exception as error:
            raise RequestFailed("build", last_line(error)) from error
        return {"trace": trace}

    def minimal(self, workload: int) -> Reply:
        """Build the minimal schedule."""
        self._write(minimal(self.workloads[workload], self.target), MINIMAL)
        return {}

    def _write(self, function: tvm.tirx.PrimFunc, name: int | str) -> None:
        write_library(compiled(function, self.target), library(self.folder, name), self.target)


class BoardRunner(CandidateRunner):
    """Checks and times candidates in a session on a board.

    One session serves one candidate after the other, until it is lost or has too little time left.

    Parameters
    ----------
    workloads : sequence of Workload
    hardware : Remote
    folder : Path
        Where libraries and reference outputs are.
    """

    def __init__(self, workloads: Sequence[Workload], hardware: Remote, folder: Path) -> None:
        super().__init__(workloads, hardware.target(), folder)
        self.hardware = hardware
        self.board: Board | None = None
        self.until = 0.0
        self.modules: dict[int, Any] = {}

    def handlers(self) -> Handlers:
        """Return the handlers of messages."""
        messages = (self.prepare, self.reference, self.time, self.sample, self.drop)
        return {function.__name__: self._classified(function) for function in messages}

    def prepare(self, workload: int, seconds: float) -> Reply:
        """Have a session that lasts so much longer, and a workload's arguments and reference on the board."""
        if self.board is None or time.monotonic() + seconds > self.until:
            self.leave()
            self.board = self.hardware.reach()
            self.until = time.monotonic() + self.board.address.timeout_s
            self.device = self.board.device(self.target)
        else:
            self.board.check()  # else the next candidate would be blamed for a session that ended before
        self.load(workload)
        if self.expected is None and self.reference_file(workload).exists():
            self.expected = tvm.runtime.tensor(self.read_reference(workload), self.device)
        return {}

    def drop(self, numbers: list[int]) -> Reply:
        """Drop candidates that were loaded."""
        for number in numbers:
            self.modules.pop(number, None)
        return {}

    def leave(self) -> None:
        """End the session: nothing may hold on to what lies on the board."""
        self.modules.clear()
        self.forget()
        self.device = self.board = None

    def minimal(self, workload: int) -> Any:
        """Return the minimal schedule, loaded on the board."""
        return self._loaded(MINIMAL)

    def module(self, number: int) -> Any:
        """Return a candidate, loaded on the board."""
        if number not in self.modules:
            self.modules[number] = self._loaded(number)
        return self.modules[number]

    def prepare_device(self) -> None:
        """Do nothing: the session has chosen its cores when it began."""

    def warm_up(self, module: Any) -> None:
        """Call a candidate once, each of its threads on a core of its own."""
        module[MAIN](*self.arguments)
        if self.target.on_processors:
            self._open.call(PIN_THREADS)

    def wrong(self, workload: int) -> str | None:
        """Return how the output deviates from the reference, None if it does not."""
        return str(self._open.call(DIFFERENCE, self.arguments[-1], self.expected, self.tolerance)) or None

    def time_call(self, module: Any) -> float:
        """Return the seconds of one call by the board's clock."""
        return float(module.time_evaluator(MAIN, self.device, number=1)(*self.arguments).mean)

    @property
    def _open(self) -> Board:
        assert self.board is not None
        return self.board

    def _loaded(self, name: int | str) -> Any:
        return self._open.load_library(library(self.folder, name))

    def _classified(self, function: Callable[..., Reply]) -> Callable[..., Reply]:
        """Return a handler that says whether a candidate has failed, or the board is lost."""

        def handler(**message: Any) -> Reply:
            try:
                with reaching(self.hardware.address):
                    return function(**message)
            except RequestFailed:
                raise
            except Exception as error:
                self.leave()  # what raised may have damaged more than itself, such as a GPU's context
                kind = next((kind for cls, kind in KINDS.items() if isinstance(error, cls)), "run")
                words = last_line(error) if kind == "run" else str(error)
                raise RequestFailed(kind, words) from None

        return handler
