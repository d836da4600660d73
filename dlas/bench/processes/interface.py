"""Interfaces of the runners of a sweep's steps, and of a step's channel to the sweep."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from pathlib import Path
from typing import ClassVar

from dlas.bench.processes.events import Event, Task


class Channel(ABC):
    """A step's connection to the sweep while it runs."""

    own_process: ClassVar[bool] = True
    """Whether the step's process runs nothing else, before it or beside it, but the steps of its job."""

    @abstractmethod
    def say(self, text: str) -> None:
        """Show a line of progress, and write it to the log."""

    @abstractmethod
    def turn(self) -> None:
        """Give the device to the other points of a comparison; return when it is this point's turn again."""


class Runner(ABC):
    """Runs jobs, each of one or more tasks, and reports their events."""

    contained: ClassVar[bool] = True
    """Whether jobs run in processes of their own, several at a time and within limits."""

    @property
    def elsewhere(self) -> int:
        """Number of jobs that run on other machines."""
        return 0

    @property
    def room_elsewhere(self) -> int:
        """Number of further jobs that other machines can run, if they make artifacts."""
        return 0

    def goes_elsewhere(self, key: str) -> bool:
        """Return whether a job that makes the artifact of a key would run on another machine."""
        return False

    @abstractmethod
    def start(self, tasks: Sequence[Task], *, log: Path, memory: int, threads: int = 1) -> int:
        """Run tasks one after the other.

        Parameters
        ----------
        tasks : sequence of Task
            They end with the first one that fails.
        log : Path
            Their output is appended to it.
        memory : int
            Limit for the job's processes together: bytes of anonymous memory.
        threads : int
            Threads of numerical libraries, unless a task sets another number:
            where steps run in parallel, spinning threads cost more than they save.

        Returns
        -------
        int
            The job's number, which its events carry.
        """

    @abstractmethod
    def turn(self, job: int) -> None:
        """Let a job that waits in :meth:`Channel.turn` continue."""

    @abstractmethod
    def pause(self, job: int) -> None:
        """Stop a job and the clock of its time limit."""

    @abstractmethod
    def resume(self, job: int) -> None:
        """Let a paused job continue."""

    @abstractmethod
    def events(self, seconds: float) -> list[Event]:
        """Return the events so far, waiting at most ``seconds`` for the first."""

    @abstractmethod
    def close(self) -> None:
        """End every job; may be called more than once."""
