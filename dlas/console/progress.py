"""What a sweep shows while it runs: a live line on a terminal, one line a row elsewhere."""

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

SPOKEN_EVERY_SECONDS = 10.0
"""Without a terminal, a long step's own words are printed at most this often."""


class SweepProgress:
    """Shows points done, running and failed, the stages under way and the time left.

    Parameters
    ----------
    total : int
        Points that the sweep is to end with.
    console : Console
    axes : sequence of str
        What tells the points apart: the axes that have more than one value.
    live : bool
        Redraw a line on a terminal; where steps themselves write to it, do not.
    """

    def __init__(self, total: int, console: Console, axes: Sequence[str], live: bool = True) -> None:
        self.total = total
        self.console = console
        self.axes = axes
        self.started = time.monotonic()
        self._said = ""
        self._spoke = 0.0
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
        """Show what a step says of itself."""
        self._said = text
        if self._live is None and time.monotonic() - self._spoke > SPOKEN_EVERY_SECONDS:
            self._spoke = time.monotonic()
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
        said = [self._said] if self._said and running else []
        text = Text("\n  ".join([line, *stages, *said]), no_wrap=True, overflow="ellipsis")
        self._live.update(text, refresh=True)

    def row(self, row: Row) -> None:
        """Print a line for a finished point."""
        self._rows += 1
        self._said = ""
        what = (row.reason or "").partition("\n")[0]
        if row.latency_s:
            median, low, high = intervals.median(row.latency_s)
            what = f"{median * 1e3:.3g} ms [{low * 1e3:.3g}, {high * 1e3:.3g}]" + (
                " noisy" if row.noisy else ""
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
        """Return what tells a point from the others of its study."""
        shown = [content[axis] for axis in self.axes]
        return " / ".join(
            f"batch {each}" if isinstance(each, int) else str(Choice.of(each)) for each in shown
        )

    def _left(self, written: int) -> str:
        """Return the time left, at the pace of the points so far."""
        pace = (time.monotonic() - self.started) / written
        seconds = int(pace * max(0, self.total - self._kept - written))
        hours, minutes = seconds // 3600, seconds // 60 % 60
        return f"{hours} h {minutes:02} min" if hours else f"{minutes} min {seconds % 60:02} s"
