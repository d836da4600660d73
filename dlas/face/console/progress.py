"""Progress of a sweep: a bar over its steps with what is under way, and one line for each row."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, Literal, NamedTuple

from rich.console import Console, Group
from rich.live import Live
from rich.markup import escape
from rich.progress import BarColumn, TextColumn
from rich.progress import Progress as Bar
from rich.status import Status
from rich.text import Text

from dlas.face.console import terminal
from dlas.face.tables.marks import COLOURS
from dlas.stack import INFERENCE
from dlas.sweep.engine.point_run import PointRun, Summary
from dlas.sweep.engine.progress import Display, Progress
from dlas.sweep.rows import intervals
from dlas.sweep.rows.labels import MOST_OF_A_VALUE, duration, milliseconds, short_id, shortened
from dlas.sweep.rows.results import Row
from dlas.sweep.study.point import Choice

ProgressKind = Literal["auto", "rich", "plain", "silent"]
MESSAGE_EVERY_SECONDS = 10.0
"""Least time between printed messages of steps, where there is no terminal."""
MOST_SHOWN = 4
"""Most points under way that are named."""
USUAL_STEPS = 4
"""Steps of a point, before any point is planned."""
COMPARABLE = ("dataset", "model", "hardware", "batch", "task")
"""Points with equal values compete for the best time."""


@dataclass
class ConsoleDisplay(Display):
    """Shows on the terminal what a session does."""

    console: Console
    lines: bool = True
    """Print lines for sweeps and their rows; False for the bar alone."""
    spinner: Spinner = field(default_factory=lambda: Spinner())
    """Shows what is done between sweeps."""

    @classmethod
    def of(cls, progress: ProgressKind = "auto") -> ConsoleDisplay:
        """Return what shows progress in one of the ways of :func:`dlas.face.console.terminal.console`.

        Raises
        ------
        InputError
            If there is no such way.
        """
        return cls(terminal.console(progress))

    def say(self, line: str) -> None:
        """Print a line."""
        if self.lines:
            self.console.print(line, highlight=False)

    def warn(self, line: str) -> None:
        """Print a warning on standard error, however progress is shown."""
        terminal.warn(line)

    def sweep(self, total: int, axes: Sequence[str], inline: bool) -> SweepProgress:
        """Return the bar of a sweep; there is none where steps write to the terminal themselves."""
        self.spinner.show(self.console, "")
        return SweepProgress(total, self.console, axes, live=not inline, lines=self.lines)

    def part(self) -> ConsoleDisplay:
        """Return what shows the bar alone."""
        return ConsoleDisplay(self.console, False, self.spinner)

    def status(self, line: str) -> None:
        """Show what is done between sweeps, on a terminal."""
        self.spinner.show(self.console, line)


@dataclass
class Spinner:
    """Shows on a terminal that work goes on, where no bar does."""

    _status: Status | None = None

    def show(self, console: Console, line: str) -> None:
        """Show a line, or nothing if it is empty."""
        if not line and self._status is not None:
            self._status.stop()
            self._status = None
        elif self._status is not None:
            self._status.update(line)
        elif line and console.is_terminal:
            self._status = console.status(line)
            self._status.start()


class Steps(NamedTuple):
    """Numbers of steps: those that are done, and all."""

    done: int
    all: int


class SweepProgress(Progress):
    """Shows the steps done and under way, the time left and the best time so far.

    Parameters
    ----------
    total : int
        Number of points in the study.
    console : Console
    axes : sequence of str
        The axes that have more than one value, which identify a point.
    live : bool
        Redraw a bar on a terminal; False where steps write to the terminal themselves.
    lines : bool
        Print lines for rows, and without a terminal for messages of steps.
    """

    def __init__(
        self, total: int, console: Console, axes: Sequence[str], live: bool = True, lines: bool = True
    ) -> None:
        self.total = total
        self.console = console
        self.axes = axes
        self.lines = lines
        self.started = time.monotonic()
        self._messages: dict[str, tuple[str, str]] = {}
        self._printed_at = 0.0
        self._rows = 0
        self._kept = 0
        self._best: dict[str, tuple[float, str]] = {}
        self._latest: str | None = None
        self._bar = Bar(BarColumn(), TextColumn("{task.description}"), console=console)
        self._task = self._bar.add_task("", total=None)
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

    def say(self, run: PointRun, text: str) -> None:
        """Show a message of the step that a point is in, until the step ends."""
        self._messages[run.point.id] = run.under_way.name, text
        due = time.monotonic() - self._printed_at > MESSAGE_EVERY_SECONDS
        if self.lines and self._live is None and due:
            self._printed_at = time.monotonic()
            line = f"  {run.under_way.name}: {self._names(run.point.content())}: {text}"
            self.console.print(escape(line), highlight=False, soft_wrap=True)

    def show(self, runs: Sequence[PointRun], summary: Summary, idle: bool) -> None:
        """Redraw the bar and what is under way."""
        self._kept = summary.kept
        if self._live is None:
            return
        written = sum(summary.written.values())
        steps = self._steps(runs, written)
        self._bar.update(self._task, completed=steps.done, total=max(steps.all, 1))
        bad = written - summary.written["ok"]
        elapsed = time.monotonic() - self.started
        pieces = [f"{summary.kept + written}/{self.total} points", f"{duration(round(elapsed))} elapsed"]
        if steps.done >= USUAL_STEPS:
            pieces.insert(1, f"about {duration(round(elapsed / steps.done * (steps.all - steps.done)))} left")
        if bad:
            pieces.append(f"{bad} not ok")
        self._bar.update(self._task, description=", ".join(pieces))
        lines = Text("\n".join(self._lines(runs, idle)), no_wrap=True, overflow="ellipsis")
        self._live.update(Group(self._bar, lines), refresh=True)

    def row(self, row: Row) -> None:
        """Print a line for a finished point."""
        self._rows += 1
        self._messages.pop(row.id, None)
        if not self.lines:
            return
        names = self._names(asdict(row))
        what = (row.reason or "").partition("\n")[0]
        if row.latency_s:
            what = self._timed(row, names)
        elif row.tuning and row.status == "ok":
            what = "{trials} trials, {valid} of them valid, in {seconds:.3g} s".format(**row.tuning)
        colour = COLOURS[row.status]
        self.console.print(
            f"{self._kept + self._rows}/{self.total} [{colour}]{row.status}[/{colour}] "
            + escape(f"{short_id(row.id)} {names}: {what}"),
            highlight=False,
            soft_wrap=True,
        )

    def _timed(self, row: Row, names: str) -> str:
        """Return a row's time with its interval, and keep the best of its kind."""
        median, low, high = intervals.median(row.latency_s)
        kind = str([getattr(row, axis) for axis in COMPARABLE])
        if row.status == "ok" and not row.unstable:
            self._best[kind] = min(self._best.get(kind, (median, names)), (median, names))
            self._latest = kind
        mark = " unstable" if row.unstable else " noisy" if row.noisy else ""
        return f"{median * 1e3:.3g} ms [{low * 1e3:.3g}, {high * 1e3:.3g}]{mark}"

    def _steps(self, runs: Sequence[PointRun], written: int) -> Steps:
        """Return the steps of the points without a row at the start; most points have about as many."""
        done = sum(run.done + run.ended for run in runs)
        planned = sum(len(run.plan.steps) + 1 for run in runs)
        usual = planned / len(runs) if runs else USUAL_STEPS
        waiting = max(0, self.total - self._kept - written - len(runs))
        return Steps(done + round(written * usual), planned + round((written + waiting) * usual))

    def _lines(self, runs: Sequence[PointRun], idle: bool) -> Iterator[str]:
        """Yield a line for each point under way, and one for the best time so far."""
        running = [run for run in runs if run.job is not None]
        for run in running[:MOST_SHOWN]:
            step, (said_in, text) = run.under_way.name, self._messages.get(run.point.id, ("", ""))
            message = f": {text}" if said_in == step else ""
            yield f"  {step:8}{self._names(run.point.content())}{message}"
        if len(running) > MOST_SHOWN:
            yield f"  and {len(running) - MOST_SHOWN} more"
        if idle:
            yield "  waiting for a device or an artifact that another sweep holds"
        if self._latest:
            seconds, names = self._best[self._latest]
            yield f"  best    {milliseconds(seconds)} ms: {names}"

    def _names(self, content: Mapping[str, Any]) -> str:
        """Return the values that identify a point within its study."""
        shown = [content.get(axis, INFERENCE) for axis in self.axes]
        return " / ".join(
            f"batch {value}"
            if isinstance(value, int)
            else value
            if isinstance(value, str)
            else shortened(str(Choice.of(value)), MOST_OF_A_VALUE)
            for value in shown
        )
