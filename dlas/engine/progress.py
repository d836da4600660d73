"""What a sweep reports while it runs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from dlas.engine.point_run import PointRun, Summary
from dlas.rows.results import Row


class Progress(Protocol):
    """Shows how a sweep goes on."""

    def say(self, text: str) -> None:
        """Show what a step says of itself."""

    def show(self, runs: Sequence[PointRun], summary: Summary, idle: bool) -> None:
        """Show which points are under way.

        Parameters
        ----------
        runs : sequence of PointRun
        summary : Summary
            Of the points that are done.
        idle : bool
            Whether all of them wait for what another sweep holds.
        """

    def row(self, row: Row) -> None:
        """Show that a point is finished."""
