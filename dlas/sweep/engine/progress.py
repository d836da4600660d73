"""The interface through which a sweep reports its progress."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from dlas.sweep.engine.point_run import PointRun, Summary
from dlas.sweep.rows.results import Row


class Progress(Protocol):
    """Shows the progress of a sweep."""

    def say(self, run: PointRun, text: str) -> None:
        """Show a line of progress of the step that a point is in."""

    def show(self, runs: Sequence[PointRun], summary: Summary, idle: bool) -> None:
        """Show the points in progress.

        Parameters
        ----------
        runs : sequence of PointRun
        summary : Summary
            Of the finished points.
        idle : bool
            Whether all of them wait for another sweep.
        """

    def row(self, row: Row) -> None:
        """Show that a point is finished."""
