"""Progress of a sweep: a bar over its steps with what is under way, and one line for each row."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any, Literal, NamedTuple

from rich.console import Console, Group
from rich.live import Live
from rich.markup import escape
from rich.progress import BarColumn, TextColumn
from rich.progress import Progress as Bar
from rich.status import Status
from rich.text import Text

from dlas.face.console import terminal
from dlas.face.console.clocks import EpochTimer, QuietClock, RemainingTime
from dlas.face.tables.marks import COLOURS
from dlas.stack import INFERENCE
from dlas.sweep.engine.point_run import Summary
from dlas.sweep.engine.progress import Display, Progress, UnderWay
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
    clock: QuietClock = field(default_factory=QuietClock)
    """Tells when a line is due where there is no terminal; of all that is shown of one session."""

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
            self.clock.spoke()

    def warn(self, line: str) -> None:
        """Print a warning on standard error, however progress is shown."""
        terminal.warn(line)

    def sweep(self, total: int, axes: Sequence[str], inline: bool) -> SweepProgress:
        """Return the bar of a sweep; there is none where steps write to the terminal themselves."""
        self.spinner.show(self.console, "")
        return SweepProgress(total, self.console, axes, not inline, self.lines, self.clock)

    def part(self) -> ConsoleDisplay:
        """Return what shows the bar alone."""
        return replace(self, lines=False)

    def status(self, line: str) -> None:
        """Show what is done between sweeps: on a terminal at once, elsewhere when it has been quiet."""
        self.spinner.show(self.console, line)
        if line and not self.console.is_terminal and self.clock.due():
            self.console.print(f"  {line}", highlight=False, markup=False, soft_wrap=True)


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
    clock : QuietClock, optional
        Without a terminal what is under way is printed when it is due.
    """

    def __init__(
        self,
        total: int,
        console: Console,
        axes: Sequence[str],
        live: bool = True,
        lines: bool = True,
        clock: QuietClock | None = None,
    ) -> None:
        self.total = total
        self.console = console
        self.axes = axes
        self.lines = lines
        self.clock = clock or QuietClock()
        self.started = self.clock.now()
        self._remaining = RemainingTime()
        self._messages: dict[str, tuple[str, str]] = {}
        self._training: dict[str, EpochTimer] = {}
        self._printed_at = -math.inf
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

    def say(self, point: UnderWay, text: str) -> None:
        """Show a message of the step that a point is in, until the step ends, and how long training takes."""
        text += self._training.setdefault(point.id, EpochTimer()).left(text, self.clock.now())
        self._messages[point.id] = point.step_name, text
        due = self.clock.now() - self._printed_at > MESSAGE_EVERY_SECONDS
        if self.lines and self._live is None and due:
            self._printed_at = self.clock.now()
            line = f"  {point.step_name}: {self._names(point.content)}: {text}"
            self._print(escape(line))

    def note(self, point: UnderWay, text: str) -> None:
        """Print a line about a point, however many there were just before."""
        if self.lines:
            self._print(escape(f"  {self._names(point.content)}: {text}"))

    def show(self, points: Sequence[UnderWay], summary: Summary, waiting_for: str) -> None:
        """Redraw the bar and what is under way; without a terminal print it where nothing else was."""
        self._kept = summary.kept.total()
        steps = self._steps(points, summary.written.total())
        told = self._standing(steps, summary, bool(waiting_for))
        if self._live is None:
            if self.clock.due():
                under_way = next(self._lines(points, waiting_for), "").strip()
                self._print(escape("  " + "; ".join(filter(None, (told, under_way)))))
            return
        self._bar.update(self._task, completed=steps.done, total=max(steps.all, 1), description=told)
        lines = Text("\n".join(self._lines(points, waiting_for)), no_wrap=True, overflow="ellipsis")
        self._live.update(Group(self._bar, lines), refresh=True)

    def _standing(self, steps: Steps, summary: Summary, waiting: bool) -> str:
        """Return how many points are done, and how long it takes, unless that depends on another process."""
        written, elapsed = summary.written.total(), self.clock.now() - self.started
        pieces = [f"{self._kept + written}/{self.total} points", f"{duration(round(elapsed))} elapsed"]
        left = self._remaining.left_s(elapsed, *steps)
        if left is not None and not waiting:
            pieces.insert(1, f"about {duration(round(left))} left")
        if bad := written - summary.written["ok"]:
            pieces.append(f"{bad} not ok")
        return ", ".join(pieces)

    def _print(self, line: str) -> None:
        """Print a line of markup."""
        self.console.print(line, highlight=False, soft_wrap=True)
        self.clock.spoke()

    def row(self, row: Row) -> None:
        """Print a line for a finished point."""
        self._rows += 1
        self._messages.pop(row.id, None)
        self._training.pop(row.id, None)
        if not self.lines:
            return
        names = self._names(asdict(row))
        what = (row.reason or "").partition("\n")[0]
        if row.latency_s:
            what = "; ".join(filter(None, (self._timed(row, names), what)))
        elif row.tuning and row.status == "ok":
            what = "{trials} trials, {valid} of them valid".format(**row.tuning)
            what += f", in {duration(row.tuning['seconds'])}"
        colour = COLOURS[row.status]
        self._print(
            f"{self._kept + self._rows}/{self.total} [{colour}]{row.status}[/{colour}] "
            + escape(f"{short_id(row.id)} {names}: {what}")
        )

    def _timed(self, row: Row, names: str) -> str:
        """Return a row's time with its interval, and keep the best of its kind."""
        median, low, high = intervals.median(row.latency_s)
        kind = str([getattr(row, axis) for axis in COMPARABLE])
        if row.status == "ok":
            self._best[kind] = min(self._best.get(kind, (median, names)), (median, names))
            self._latest = kind
        mark = " noisy" if row.noisy else ""
        time, *bounds = (milliseconds(seconds, digits=3) for seconds in (median, low, high))
        return f"{time} ms [{', '.join(bounds)}]{mark}"

    def _steps(self, points: Sequence[UnderWay], written: int) -> Steps:
        """Return the steps of the points without a row at the start; most points have about as many."""
        done = sum(point.steps_done for point in points)
        planned = sum(point.steps for point in points)
        usual = planned / len(points) if points else USUAL_STEPS
        waiting = max(0, self.total - self._kept - written - len(points))
        return Steps(done + round(written * usual), planned + round((written + waiting) * usual))

    def _lines(self, points: Sequence[UnderWay], waiting_for: str) -> Iterator[str]:
        """Yield a line for each point under way, and one for the best time so far."""
        running = [point for point in points if point.running]
        for point in running[:MOST_SHOWN]:
            step, (said_in, text) = point.step_name, self._messages.get(point.id, ("", ""))
            message = f": {text}" if said_in == step else ""
            node = f"{point.node}: " if point.node else ""
            yield f"  {node}{step:8}{self._names(point.content)}{message}"
        if len(running) > MOST_SHOWN:
            yield f"  and {len(running) - MOST_SHOWN} more"
        if waiting_for:
            yield f"  waiting for {waiting_for}"
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
