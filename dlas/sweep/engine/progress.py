"""The interfaces through which sweeps show their progress; ``face/console`` shows it on a terminal."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any, Protocol

from dlas.sweep.engine.point_run import Summary
from dlas.sweep.rows.results import Row


class UnderWay(Protocol):
    """A point in progress."""

    @property
    def id(self) -> str:
        """Its id."""

    @property
    def content(self) -> Mapping[str, Any]:
        """What it chooses on each axis."""

    @property
    def step_name(self) -> str:
        """The step that is worked on, or that comes next."""

    @property
    def steps_done(self) -> int:
        """Steps that have ended."""

    @property
    def steps(self) -> int:
        """All its steps, measuring included."""

    @property
    def running(self) -> bool:
        """Whether a step is worked on."""

    @property
    def node(self) -> str:
        """The machine that it is on; empty where all are on this one."""


class Progress(ABC):
    """Shows the progress of a sweep."""

    @abstractmethod
    def say(self, point: UnderWay, text: str) -> None:
        """Show a line of progress of the step that a point is in."""

    def note(self, point: UnderWay, text: str) -> None:
        """Show a line about a point that stays."""
        self.say(point, text)

    @abstractmethod
    def show(self, points: Sequence[UnderWay], summary: Summary, waiting_for: str) -> None:
        """Show the points in progress.

        Parameters
        ----------
        summary : Summary
            Of the finished points.
        waiting_for : str
            What all of them wait for, and who has it; empty while one is worked on.
        """

    @abstractmethod
    def row(self, row: Row) -> None:
        """Show that a point is finished."""

    def kept(self, point: str) -> None:  # noqa: B027 - the summary tells how many there are
        """Show that a point, by its id, has a current row."""


class Display(ABC):
    """Shows what a session does: a line now and then, and the progress of each sweep."""

    @abstractmethod
    def say(self, line: str) -> None:
        """Show a line about a sweep as a whole."""

    @abstractmethod
    def warn(self, line: str) -> None:
        """Show a warning, whatever else is shown."""

    @abstractmethod
    def sweep(self, total: int, axes: Sequence[str], inline: bool) -> AbstractContextManager[Progress]:
        """Return what shows a sweep while it runs.

        Parameters
        ----------
        total : int
            Number of its points.
        axes : sequence of str
            The axes that have more than one value, which identify a point.
        inline : bool
            Whether steps run in this process, and write to the terminal themselves.
        """

    def status(self, line: str) -> None:  # noqa: B027 - not every display has a place for it
        """Show what is done between sweeps, until the next one or an empty line."""

    def part(self) -> Display:
        """Return how the sweeps of something larger are shown: without a line for each row."""
        return self


class SilentProgress(Progress):
    """Shows nothing of a sweep."""

    def say(self, point: UnderWay, text: str) -> None:
        """Show nothing."""

    def show(self, points: Sequence[UnderWay], summary: Summary, waiting_for: str) -> None:
        """Show nothing."""

    def row(self, row: Row) -> None:
        """Show nothing."""


class Silent(Display):
    """Shows nothing, not even warnings."""

    def say(self, line: str) -> None:
        """Show nothing."""

    def warn(self, line: str) -> None:
        """Show nothing."""

    def sweep(self, total: int, axes: Sequence[str], inline: bool) -> AbstractContextManager[Progress]:
        """Return what shows nothing."""
        return nullcontext(SilentProgress())
