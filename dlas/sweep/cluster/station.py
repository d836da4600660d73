"""On a machine with a device: a sweep of the points that it is given, as they come."""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from dlas.bench.processes.interface import Runner
from dlas.bench.store import fingerprint
from dlas.bench.store.cache import Cache
from dlas.errors import InputError, one_line
from dlas.sweep.engine.checks import devices
from dlas.sweep.engine.point_run import Summary
from dlas.sweep.engine.progress import Progress, UnderWay
from dlas.sweep.engine.sweep import Sweep, SweepOptions
from dlas.sweep.rows.results import CURVES, Row
from dlas.sweep.study.point import Point
from dlas.sweep.study.study import Study

LOG_BYTES = 2**18
"""The end of a log travels with its row."""

Standing = tuple[str, str | None]
"""Status and key of a row that exists; no key where it is to be measured again."""
Given = tuple[Mapping[str, Any], Standing | None]
"""A point's content, and its row of before."""


@dataclass(frozen=True)
class Seen:
    """A point in progress, as a station tells it."""

    id: str
    content: Mapping[str, Any]
    step_name: str
    steps_done: int
    steps: int
    running: bool
    node: str


@dataclass(frozen=True)
class Told:
    """Something that a station tells once: a row, that a point has ended, or what its step says."""

    point: str
    """The point's id."""
    row: str = ""
    """Its row, as a line of a results file."""
    log: str = ""
    curves: str = ""
    """The end of its log, and the curves of its search."""
    ended: bool = False
    """Whether the point needs nothing more."""
    said: tuple[Seen, str, bool] | None = None
    """What its step says, and whether that stays."""


@dataclass(frozen=True)
class Report:
    """What a station has done."""

    told: Sequence[Told]
    """From number ``first`` on."""
    first: int
    points: Sequence[Seen]
    """In progress."""
    queued: int
    """Points that it was given and has not begun."""
    waiting_for: str
    summary: Summary
    over: bool
    """Whether the sweep has ended."""
    error: str = ""
    """Why it ended before its last point."""


@dataclass
class _Rows:
    """The rows of a station's sweep, until they are told."""

    folder: Path
    tell: Callable[[Told], None]
    existing: dict[str, Standing] = field(default_factory=dict)

    def append(self, row: Row) -> None:
        """Tell a row, with the end of its log and its curves."""
        curves = self.folder / CURVES / f"{row.id}.json"
        self.tell(
            Told(
                row.id,
                row.line(),
                _end_of(self.folder / "logs" / f"{row.id}.log"),
                curves.read_text() if curves.exists() else "",
            )
        )


class _Progress(Progress):
    """Keeps what a display on another machine shows."""

    def __init__(self, name: str, tell: Callable[[Told], None], stopped: threading.Event) -> None:
        self.points: list[Seen] = []
        self.waiting_for = ""
        self._name, self._tell, self._stopped = name, tell, stopped

    def say(self, point: UnderWay, text: str) -> None:
        """Tell a line of a step."""
        self._tell(Told(point.id, said=(self._seen(point), text, False)))

    def note(self, point: UnderWay, text: str) -> None:
        """Tell a line that stays."""
        self._tell(Told(point.id, said=(self._seen(point), text, True)))

    def show(self, points: Sequence[UnderWay], summary: Summary, waiting_for: str) -> None:
        """Keep what is under way; end the sweep if that is asked for."""
        if self._stopped.is_set():
            raise KeyboardInterrupt
        self.points = [self._seen(point) for point in points]
        self.waiting_for = waiting_for

    def row(self, row: Row) -> None:
        """Tell that a point has ended."""
        self._tell(Told(row.id, ended=True))

    def kept(self, point: str) -> None:
        """Tell that a point needs nothing."""
        self._tell(Told(point, ended=True))

    def _seen(self, point: UnderWay) -> Seen:
        return Seen(
            point.id,
            point.content,
            point.step_name,
            point.steps_done,
            point.steps,
            point.running,
            self._name,
        )


class Station:
    """Sweeps points on the devices of its machine.

    Parameters
    ----------
    name : str
        Of its machine.
    root : Path
        Its cache.
    cache_bytes : int
        Size that the cache is kept within.
    make_runner : callable
        Returns what runs steps, given the cache.
    """

    def __init__(
        self, name: str, root: Path, cache_bytes: int, make_runner: Callable[[Cache], Runner]
    ) -> None:
        self._name, self._make_runner = name, make_runner
        self._cache = Cache(root, cache_bytes)
        self._given: queue.SimpleQueue[Given | None] = queue.SimpleQueue()
        self._told: list[Told] = []
        self._first = 0
        self._lock = threading.Lock()
        self._stopped = threading.Event()
        self._thread: threading.Thread | None = None
        self._summary = Summary()
        self._over, self._error = True, ""
        self._progress = _Progress(name, self._tell, self._stopped)
        self._rows = _Rows(Path(), self._tell)

    def refusal(self, study: str) -> str:
        """Return why a study cannot be run on this machine; empty if it can.

        Parameters
        ----------
        study : str
            The content of its file.
        """
        try:
            Study.parse(study).check_parts()
        except InputError as error:
            return str(error)
        return ""

    def devices(self, study: str) -> list[tuple[str, Mapping[str, Any]]]:
        """Return the devices of a study that can be used here, each with the name of its hardware."""
        return list(devices(Study.parse(study).values("hardware")))

    def begin(self, study: str, options: SweepOptions) -> None:
        """Begin a sweep of the points of a study that :meth:`give` will bring."""
        parsed = Study.parse(study)
        if self._thread is not None:  # an earlier sweep that has not ended would measure beside this one
            self._stopped.set()
            self._thread.join()
        self._rows = _Rows(self._cache.workspace(f"cluster-{fingerprint.key(study=study)}"), self._tell)
        self._stopped.clear()
        with self._lock:
            self._over, self._error = False, ""
            self._told, self._first = [], 0
        self._summary = Summary()
        self._given = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._run, args=(parsed, options), daemon=True)
        self._thread.start()

    def give(self, points: Sequence[Given]) -> None:
        """Take points."""
        for point in points:
            self._given.put(point)

    def end(self) -> None:
        """Take no more points: the sweep ends with those that it has."""
        self._given.put(None)

    def report(self, seen: int) -> Report:
        """Return what has been done; what was told before number ``seen`` is known."""
        with self._lock:
            self._told = self._told[max(0, seen - self._first) :]
            self._first = max(self._first, seen)
            over, error = self._over, self._error  # before what was told last is looked at
            return Report(
                list(self._told),
                self._first,
                [] if over else self._progress.points,
                self._given.qsize(),
                self._progress.waiting_for,
                self._summary,
                over,
                error,
            )

    def stop(self) -> None:
        """End the sweep; what is measured keeps its slices."""
        self._stopped.set()

    def _run(self, study: Study, options: SweepOptions) -> None:
        error = ""
        try:
            runner = self._make_runner(self._cache)
            try:
                sweep = Sweep(study, self._rows, self._cache, runner, self._progress, options)
                self._summary = sweep.summary
                sweep.run(self._points())
            finally:
                runner.close()
        except KeyboardInterrupt:
            error = "interrupted"
        except Exception as raised:
            error = f"{type(raised).__name__}: {one_line(str(raised))}"
        with self._lock:
            self._over, self._error = True, error

    def _points(self) -> Iterator[Point | None]:
        """Yield the points that are given until the last one; None while there is none."""
        while True:
            try:
                given = self._given.get_nowait()
            except queue.Empty:
                yield None
                continue
            if given is None:
                return
            content, standing = given
            point = Point.of(content)
            if standing is not None:
                self._rows.existing[point.id] = standing
            yield point

    def _tell(self, told: Told) -> None:
        with self._lock:
            self._told.append(told)


def _end_of(log: Path) -> str:
    try:
        with log.open("rb") as file:
            file.seek(max(0, log.stat().st_size - LOG_BYTES))
            return file.read().decode(errors="replace")
    except OSError:
        return ""
