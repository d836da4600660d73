"""Progress of a sweep: a live line on a terminal, and one line for each row."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.live import Live
from rich.markup import escape
from rich.text import Text

from dlas.console.cells import COLOURS
from dlas.rows import intervals
from dlas.rows.results import Row
from dlas.study.point import Choice

if TYPE_CHECKING:
    from dlas.engine.point_run import PointRun, Summary

MESSAGE_EVERY_SECONDS = 10.0
"""Least time between printed messages of steps, where there is no terminal."""


class SweepProgress:
    """Shows points done, running and failed, the stages under way and the time left.

    Parameters
    ----------
    total : int
        Number of points in the study.
    console : Console
    axes : sequence of str
        The axes that have more than one value, which identify a point.
    live : bool
        Redraw a line on a terminal; False where steps write to the terminal themselves.
    """

    def __init__(self, total: int, console: Console, axes: Sequence[str], live: bool = True) -> None:
        self.total = total
        self.console = console
        self.axes = axes
        self.started = time.monotonic()
        self._message = ""
        self._printed_at = 0.0
        self._rows = 0
        self._kept = 0
        self._live = (
            Live(console=console, auto_refresh=False, transient=True)
            if live and console.is_terminal
            else None
        )

    def __enter__(self) -> SweepProgress:
        if self._live:
            self._live.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self._live:
            self._live.stop()

    def say(self, text: str) -> None:
        """Show a message of a step."""
        self._message = text
        if self._live is None and time.monotonic() - self._printed_at > MESSAGE_EVERY_SECONDS:
            self._printed_at = time.monotonic()
            self.console.print(f"  {escape(text)}", highlight=False)

    def show(self, runs: Sequence[PointRun], summary: Summary, idle: bool) -> None:
        """Redraw the live line."""
        self._kept = summary.kept
        if self._live is None:
            return
        written = sum(summary.written.values())
        bad = written - summary.written["ok"]
        running = [run for run in runs if run.job is not None]
        line = f"{summary.kept + written}/{self.total} points, {len(running)} running, {bad} not ok"
        line += f", {self._left(written)} left" if written else ""
        stages = [f"{run.step.name}: {self._names(run.point.content())}" for run in running[:2]]
        if idle:
            stages = ["waiting for a device or an artifact that another sweep holds"]
        message = [self._message] if self._message and running else []
        text = Text("\n  ".join([line, *stages, *message]), no_wrap=True, overflow="ellipsis")
        self._live.update(text, refresh=True)

    def row(self, row: Row) -> None:
        """Print a line for a finished point."""
        self._rows += 1
        self._message = ""
        what = (row.reason or "").partition("\n")[0]
        if row.latency_s:
            median, low, high = intervals.median(row.latency_s)
            what = f"{median * 1e3:.3g} ms [{low * 1e3:.3g}, {high * 1e3:.3g}]" + (
                " unstable" if row.unstable else " noisy" if row.noisy else ""
            )
        elif row.tuning and row.status == "ok":
            what = "{trials} trials, {valid} of them valid, in {seconds:.3g} s".format(**row.tuning)
        colour = COLOURS[row.status]
        self.console.print(
            f"{self._kept + self._rows}/{self.total} [{colour}]{row.status}[/{colour}] "
            + escape(f"{self._names(asdict(row))}: {what}"),
            highlight=False,
            soft_wrap=True,
        )

    def _names(self, content: Mapping[str, Any]) -> str:
        """Return the values that identify a point within its study."""
        shown = [content[axis] for axis in self.axes]
        return " / ".join(
            f"batch {value}" if isinstance(value, int) else str(Choice.of(value)) for value in shown
        )

    def _left(self, written: int) -> str:
        """Return the time left, at the pace of the points so far."""
        pace = (time.monotonic() - self.started) / written
        seconds = int(pace * max(0, self.total - self._kept - written))
        hours, minutes = seconds // 3600, seconds // 60 % 60
        return f"{hours} h {minutes:02} min" if hours else f"{minutes} min {seconds % 60:02} s"
