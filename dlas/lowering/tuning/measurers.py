"""What a search tries its candidates with: workers that build them, and the device that runs them."""

from __future__ import annotations

import functools
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from dlas.bench.processes.workers import CANDIDATE_BYTES, Reply, WorkerPool
from dlas.bench.remote.board import Remote
from dlas.errors import Unreachable, Unsupported
from dlas.lowering.tuning.board_runner import LOST, MINIMAL, REFUSED, BoardRunner, LibraryBuilder, library
from dlas.lowering.tuning.engine_runner import EngineRunner
from dlas.lowering.tuning.local_runner import LocalRunner
from dlas.lowering.tuning.workload import Workload
from dlas.stack import Hardware

BUILD_S = 60.0
"""Time limit for building a candidate."""
REFERENCE_S = 900.0
"""Time limit for building and running the minimal schedule, which is slow on large layers."""
DROP_S = 10.0
OPEN_S = 60.0
"""How long a session may take to begin on a board that is free."""

Candidates = Mapping[int, Mapping[str, Any]]
"""Candidates by number."""


class Measurer(ABC):
    """Builds and runs the candidates of some workloads; its workers start when they are first needed.

    Parameters
    ----------
    workloads : sequence of Workload
    folder : Path
        For what the workers share.
    builders : int
        Number of candidates that are built at a time.
    """

    def __init__(self, workloads: Sequence[Workload], folder: Path, builders: int) -> None:
        self.workloads, self.folder, self.builders = workloads, folder, builders
        self._stack = ExitStack()

    @property
    @abstractmethod
    def built(self) -> Sequence[int]:
        """The numbers of the candidates that are built and can be run."""

    @abstractmethod
    def reference(self, workload: int) -> Reply:
        """Let the minimal schedule compute a workload's reference output, and time it."""

    @abstractmethod
    def build(self, workload: int, candidates: Candidates) -> Iterator[tuple[int, Reply]]:
        """Build candidates in parallel; yield each one's number and reply, with its trace."""

    @abstractmethod
    def run(self, verb: str, workload: int, number: int, seconds: float, **more: Any) -> Reply:
        """Run a candidate that is built, alone on the device, for ``seconds`` at most.

        Parameters
        ----------
        verb : str
            ``time``, which checks its output too, with ``best_s``; or ``sample``.

        Raises
        ------
        Unreachable
            If the device is lost: this says nothing of the candidate.
        """

    @abstractmethod
    def drop(self, numbers: Sequence[int]) -> None:
        """Drop candidates that are built."""

    def close(self) -> None:
        """End the workers."""
        self._stack.close()

    def _pool(self, *arguments: Any) -> WorkerPool:
        return self._stack.enter_context(WorkerPool(*arguments))


class LocalMeasurer(Measurer):
    """Builds and runs candidates on this machine: the worker that builds one runs it, the others stand still.

    Parameters
    ----------
    workloads, folder, builders
        As for :class:`Measurer`.
    hardware : Hardware
    """

    def __init__(
        self, workloads: Sequence[Workload], folder: Path, builders: int, hardware: Hardware
    ) -> None:
        super().__init__(workloads, folder, builders)
        self.hardware = hardware
        self._built_by: dict[int, int] = {}

    @functools.cached_property
    def workers(self) -> WorkerPool:
        """The workers."""
        workloads, hardware, folder = self.workloads, self.hardware, self.folder
        target = hardware.target()
        runner: type[LocalRunner | EngineRunner] = EngineRunner if target.on_webassembly else LocalRunner
        # A GPU's driver, and an engine of WebAssembly, reserve more address space than any limit would allow.
        limited = target.on_processors and not target.on_webassembly
        memory = CANDIDATE_BYTES if limited else None
        return self._pool(self.builders, lambda: runner(workloads, hardware, folder).handlers(), memory)

    @property
    def built(self) -> Sequence[int]:
        """The numbers of the candidates that are built."""
        return list(self._built_by)

    def reference(self, workload: int) -> Reply:
        """Let the minimal schedule compute a workload's reference output, and time it."""
        return self.workers.call(0, REFERENCE_S, do="reference", workload=workload)

    def build(self, workload: int, candidates: Candidates) -> Iterator[tuple[int, Reply]]:
        """Build candidates in parallel; a worker that crashes takes those with it that it had built."""
        messages = _to_build(workload, candidates)
        for place, worker, reply in self.workers.map(messages, BUILD_S):
            self._forget_lost(worker, reply)
            number = messages[place]["number"]
            if "failed" not in reply:
                self._built_by[number] = worker
            yield number, reply

    def run(self, verb: str, workload: int, number: int, seconds: float, **more: Any) -> Reply:
        """Let the worker that built a candidate run it, while the other workers are stopped."""
        worker = self._built_by[number]
        reply = self.workers.call(worker, seconds, do=verb, workload=workload, number=number, **more)
        self._forget_lost(worker, reply)
        return reply

    def drop(self, numbers: Sequence[int]) -> None:
        """Let workers drop candidates."""
        for number in numbers:
            if number in self._built_by:  # else its worker has died meanwhile
                worker = self._built_by.pop(number)
                self._forget_lost(worker, self.workers.call(worker, DROP_S, do="drop", numbers=[number]))

    def _forget_lost(self, worker: int, reply: Reply) -> None:
        """Forget the candidates of a worker that has died."""
        if reply.get("gone"):
            self._built_by = {number: holder for number, holder in self._built_by.items() if holder != worker}


class BoardMeasurer(Measurer):
    """Builds candidates here, and runs them on a board, where a single worker has the session.

    A failure counts against a candidate only if the board is there afterwards.

    Parameters
    ----------
    workloads, folder, builders
        As for :class:`Measurer`.
    hardware : Remote
    """

    def __init__(self, workloads: Sequence[Workload], folder: Path, builders: int, hardware: Remote) -> None:
        super().__init__(workloads, folder, builders)
        self.hardware = hardware
        self._built: set[int] = set()

    @functools.cached_property
    def libraries(self) -> WorkerPool:
        """The workers that build."""
        workloads, target, folder = self.workloads, self.hardware.target(), self.folder
        start = LibraryBuilder(workloads, target, folder).handlers
        return self._pool(self.builders, start, CANDIDATE_BYTES)

    @functools.cached_property
    def runner(self) -> WorkerPool:
        """The worker with the session; if it blocks, the pool replaces it, and the server ends that."""
        workloads, hardware, folder = self.workloads, self.hardware, self.folder
        return self._pool(1, lambda: BoardRunner(workloads, hardware, folder).handlers(), None)

    @property
    def built(self) -> Sequence[int]:
        """The numbers of the candidates whose libraries are there."""
        return sorted(self._built)

    def reference(self, workload: int) -> Reply:
        """Let the minimal schedule compute a workload's reference output on the board, and time it there.

        The minimal schedule may take half of a session, so that one session serves several workloads.
        """
        built = self.libraries.call(0, REFERENCE_S, do="minimal", workload=workload)
        if "failed" in built:
            return built
        seconds = min(REFERENCE_S, self.hardware.address.timeout_s / 2)
        reply = self._run(seconds, "reference", workload=workload)
        library(self.folder, MINIMAL).unlink(missing_ok=True)
        return reply

    def build(self, workload: int, candidates: Candidates) -> Iterator[tuple[int, Reply]]:
        """Build the libraries of candidates in parallel."""
        messages = _to_build(workload, candidates)
        for place, _, reply in self.libraries.map(messages, BUILD_S):
            number = messages[place]["number"]
            if "failed" not in reply:
                self._built.add(number)
            yield number, reply

    def run(self, verb: str, workload: int, number: int, seconds: float, **more: Any) -> Reply:
        """Run a candidate on the board."""
        return self._run(seconds, verb, workload=workload, number=number, **more)

    def drop(self, numbers: Sequence[int]) -> None:
        """Drop candidates, on the board too."""
        self.runner.call(0, DROP_S, do="drop", numbers=list(numbers))
        for number in numbers:
            library(self.folder, number).unlink(missing_ok=True)
            self._built.discard(number)

    def _run(self, seconds: float, verb: str, workload: int, **message: Any) -> Reply:
        """Return the reply to a message; of a candidate that loses the board twice, that it crashes."""
        reply = self._attempt(seconds, verb, workload, message)
        if reply.get("failed") == LOST:
            reply = self._attempt(seconds, verb, workload, message)
        if reply.get("failed", "wrong") != "wrong":
            self._prepare(workload, seconds)
        return {**reply, "failed": "crash"} if reply.get("failed") == LOST else reply

    def _attempt(self, seconds: float, verb: str, workload: int, message: Mapping[str, Any]) -> Reply:
        self._prepare(workload, seconds)
        return self.runner.call(0, seconds, do=verb, workload=workload, **message)

    def _prepare(self, workload: int, seconds: float) -> None:
        """Have a session with a workload's arguments; its time does not count as the candidate's.

        Raises
        ------
        Unreachable
            If the board gives none, or is lost meanwhile.
        Unsupported
            If it cannot be used as its profile says.
        """
        # As long as the session of another may take, and then one's own.
        limit = 2 * self.hardware.address.timeout_s + OPEN_S
        for _ in range(2):  # the session may have ended; the second attempt opens another
            reply = self.runner.call(0, limit, do="prepare", workload=workload, seconds=seconds)
            if "failed" not in reply:
                return
            if reply["failed"] == REFUSED:
                raise Unsupported(reply["words"])
            if reply.get("gone"):
                break
        raise Unreachable(reply["words"])


def make_measurer(workloads: Sequence[Workload], hardware: Hardware, folder: Path, builders: int) -> Measurer:
    """Return what builds and runs candidates for a device.

    Raises
    ------
    Unsupported
        If the device is neither on this machine nor a board.
    """
    if isinstance(hardware, Remote):
        return BoardMeasurer(workloads, folder, builders, hardware)
    if hardware.local:
        return LocalMeasurer(workloads, folder, builders, hardware)
    raise Unsupported("tuning times its candidates on devices of this machine and on boards over RPC only")


def _to_build(workload: int, candidates: Candidates) -> list[dict[str, Any]]:
    """Return the messages that let workers build candidates."""
    return [
        {"do": "build", "workload": workload, "candidate": candidate, "number": number}
        for number, candidate in candidates.items()
    ]
