"""What runs the steps of a sweep, and what a step can say while it runs."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from pathlib import Path

from dlas.processes.events import Event, Task


class Channel(ABC):
    """A step's way to talk to the sweep while it runs."""

    @abstractmethod
    def say(self, text: str) -> None:
        """Show a line of progress, and keep it in the log."""

    @abstractmethod
    def turn(self) -> None:
        """Give the device to the other points of a comparison; return when it is this one's again."""


class Runner(ABC):
    """Runs jobs, each of one or more tasks, and reports what happens to them."""

    @abstractmethod
    def start(self, tasks: Sequence[Task], *, log: Path, memory: int, threads: int = 1) -> int:
        """Run tasks one after the other.

        Parameters
        ----------
        tasks : sequence of Task
            The first one that fails is the last.
        log : Path
            Gets what is said of them, appended.
        memory : int
            Limit of the job with all it starts: bytes of anonymous memory.
        threads : int
            What numerical libraries may use until a task says otherwise:
            where steps run in parallel, threads that spin cost more than they save.

        Returns
        -------
        int
            The job's number, which its events carry.
        """

    @abstractmethod
    def turn(self, job: int) -> None:
        """Let a job that waits in :meth:`Channel.turn` go on."""

    @abstractmethod
    def pause(self, job: int) -> None:
        """Stop a job, its clock too."""

    @abstractmethod
    def resume(self, job: int) -> None:
        """Let a paused job go on."""

    @abstractmethod
    def events(self, seconds: float) -> list[Event]:
        """Return what happened, waiting at most ``seconds`` for something to happen."""

    @abstractmethod
    def close(self) -> None:
        """End every job; it may be called again."""
