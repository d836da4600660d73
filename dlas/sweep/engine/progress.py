"""The interfaces through which sweeps show their progress; ``face/console`` shows it on a terminal."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext

from dlas.sweep.engine.point_run import PointRun, Summary
from dlas.sweep.rows.results import Row


class Progress(ABC):
    """Shows the progress of a sweep."""

    @abstractmethod
    def say(self, run: PointRun, text: str) -> None:
        """Show a line of progress of the step that a point is in."""

    def note(self, run: PointRun, text: str) -> None:
        """Show a line about a point that stays."""
        self.say(run, text)

    @abstractmethod
    def show(self, runs: Sequence[PointRun], summary: Summary, waiting_for: str) -> None:
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

    def say(self, run: PointRun, text: str) -> None:
        """Show nothing."""

    def show(self, runs: Sequence[PointRun], summary: Summary, waiting_for: str) -> None:
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
