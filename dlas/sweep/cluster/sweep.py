"""Here: gives the points of a study to stations, and writes the rows that they tell."""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections import Counter, deque
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from pathlib import Path

from dlas.bench.processes.outcome import Outcome
from dlas.bench.store.cache import Cache
from dlas.errors import Unfinished
from dlas.sweep.cluster.spread import Gone
from dlas.sweep.cluster.station import Given, Report, Told
from dlas.sweep.engine.planning import Planner, comparison
from dlas.sweep.engine.point_run import PointRun, Summary
from dlas.sweep.engine.progress import Progress
from dlas.sweep.engine.row import make_row
from dlas.sweep.engine.writers import RowWriter
from dlas.sweep.rows.labels import points as counted
from dlas.sweep.rows.results import CURVES, Row
from dlas.sweep.study.point import Point
from dlas.sweep.study.study import Study

LOW = 32
"""A station with fewer points in its queue is given more."""
MOST_GIVEN = 512
"""Most points of one comparison that are given together."""
AHEAD = 4096
"""Most points that wait for one device while others are looked for."""
LOOK_S = 0.2
"""How often stations are asked."""
NODES_S = 5.0
"""How often machines are looked for that have come back."""
MOST_DEATHS = 3
"""A point during which its machine was lost so often fails."""
STOP_S = 30.0
"""How long stations may take to stop."""


class Post(ABC):
    """A station, as it is seen from here."""

    name: str
    hardware: Collection[str]
    """Names of the hardware that it has."""

    @abstractmethod
    def give(self, points: Sequence[Given]) -> None:
        """Give it points."""

    @abstractmethod
    def end(self) -> None:
        """Have it end when it has no point left; its reports tell when it has."""

    @abstractmethod
    def report(self, seen: int) -> Report | None:
        """Return its latest report, None while none is there.

        Parameters
        ----------
        seen : int
            What it told before this number is known here.

        Raises
        ------
        Gone
            If its machine is lost.
        """

    @abstractmethod
    def stop(self) -> None:
        """Have it end now."""


class _Held:
    """A station with what it has been given."""

    def __init__(self, post: Post) -> None:
        self.post = post
        self.points: dict[str, Point] = {}
        """Points without a final row, in the order in which they were given."""
        self.seen = 0
        self.report: Report | None = None
        self.queued = 0
        """Points in its queue by its last report, and those that it was given since."""


class ClusterSweep:
    """Runs the points of a study that have no current row, on stations.

    Parameters
    ----------
    study : Study
    results : RowWriter
    cache : Cache
        Of this machine.
    find : callable
        Returns the stations that there are beside those that are named: new ones, and those of machines that
        have come back.
    progress : Progress
    patience_s : float
        How long a device may be away.
    clock : callable, optional
        Returns seconds since any moment.
    pause : callable, optional
        Waits for so many seconds.
    """

    def __init__(
        self,
        study: Study,
        results: RowWriter,
        cache: Cache,
        find: Callable[[Collection[str]], Sequence[Post]],
        progress: Progress,
        patience_s: float,
        clock: Callable[[], float] = time.monotonic,
        pause: Callable[[float], None] = time.sleep,
    ) -> None:
        self.study, self.results, self.cache = study, results, cache
        self.progress, self.summary = progress, Summary()
        self._find, self._patience_s = find, patience_s
        self._clock, self._pause = clock, pause
        self._points: Iterator[Point] = iter(())
        self._exhausted = False
        self._waiting: dict[str, deque[Point]] = {}
        self._stations: list[_Held] = []
        self._last_rows: dict[str, Row] = {}
        self._deaths: Counter[str] = Counter()
        self._past = Summary()  # of lost stations
        self._away_since: float | None = None
        self._looked = -NODES_S

    def run(self, points: Iterable[Point] | None = None) -> Summary:
        """Run until every point has its row.

        Parameters
        ----------
        points : iterable of Point, optional
            By default all of the study.

        Raises
        ------
        Unfinished
            If a device is away for too long, or a station's disk is full.
        """
        self._points = self.study.points() if points is None else iter(points)
        try:
            while not self._over():
                self._look_for_stations()
                for held in list(self._stations):
                    self._serve(held)
                self._show()
                self._pause(LOOK_S)
        except BaseException:
            self._close(now=True)
            raise
        self._close()
        return self.summary

    def _over(self) -> bool:
        if any(held.points for held in self._stations) or any(self._waiting.values()):
            return False
        if not self._exhausted:
            self._fetch(None)
            return self._exhausted and not any(self._waiting.values())
        return True

    def _look_for_stations(self) -> None:
        """Add stations that have come, and give up when nobody has had a device for too long."""
        now = self._clock()
        if now - self._looked >= NODES_S:
            self._looked = now
            known = {held.post.name for held in self._stations}
            try:
                self._stations += map(_Held, self._find(known))
            except Gone:  # while it was asked for
                self._looked = now - NODES_S / 2
        served = {name for held in self._stations for name in held.post.hardware}
        missing = sorted(name for name, points in self._waiting.items() if points and name not in served)
        if not missing:
            self._away_since = None
            return
        if self._away_since is None:
            self._away_since = now
        if now - self._away_since > self._patience_s:
            left = sum(len(self._waiting[name]) for name in missing)
            raise Unfinished(
                f"no machine with {', '.join(missing)} has come back for {self._patience_s:g} s, and "
                f"{counted(left)} or more wait for it; run the study again to go on"
            )

    def _serve(self, held: _Held) -> None:
        """Take a station's report, and give it points."""
        try:
            report = held.post.report(held.seen)
        except Gone as error:
            self._lost(held, str(error))
            return
        if report is None:
            return
        self._note(held, report)
        if report.error:
            raise Unfinished(f"{held.post.name}: {report.error}; run the study again to go on")
        given: list[Point] = []
        while held.queued + len(given) < LOW and (chunk := self._chunk(held.post.hardware)):
            given += chunk
        if given:
            held.points.update((point.id, point) for point in given)
            held.queued += len(given)
            existing = self.results.existing
            held.post.give([(point.content(), existing.get(point.id)) for point in given])

    def _note(self, held: _Held, report: Report) -> None:
        """Take what a report tells that is new."""
        for told in report.told[max(0, held.seen - report.first) :]:
            self._take(held, told)
        held.seen = report.first + len(report.told)
        held.report, held.queued = report, report.queued

    def _chunk(self, hardware: Collection[str]) -> list[Point]:
        """Return the next points that one of some devices measures, those of a comparison together."""
        for name in hardware:
            self._fetch(name)
            points = self._waiting.get(name)
            if not points:
                continue
            chunk = [points.popleft()]
            kind = comparison(chunk[0], self.study.measure)
            while points and len(chunk) < MOST_GIVEN and comparison(points[0], self.study.measure) == kind:
                chunk.append(points.popleft())
                self._fetch(name)
            return chunk
        return []

    def _fetch(self, name: str | None) -> None:
        """Take points of the study until a device has one more than a comparison waiting."""
        while not self._exhausted:
            waiting = self._waiting.get(name, ()) if name is not None else ()
            if len(waiting) > 1 or any(len(points) >= AHEAD for points in self._waiting.values()):
                return
            point = next(self._points, None)
            if point is None:
                self._exhausted = True
                return
            self._waiting.setdefault(point.hardware.name, deque()).append(point)
            if name is None:
                return

    def _take(self, held: _Held, told: Told) -> None:
        """Write a row, show what a step says, or note that a point has ended."""
        if told.said is not None:
            seen, text, stays = told.said
            (self.progress.note if stays else self.progress.say)(seen, text)
        if told.row:
            row = Row.parse(told.row)
            self._keep_beside("logs", f"{row.id}.log", told.log)
            self._keep_beside(CURVES, f"{row.id}.json", told.curves)
            self.results.append(row)
            self._last_rows[row.id] = row
        if not told.ended or held.points.pop(told.point, None) is None:
            return
        if told.point in self._last_rows:
            self._ended(self._last_rows.pop(told.point))
        else:
            self.summary.kept[self.results.existing[told.point][0]] += 1

    def _ended(self, row: Row) -> None:
        self.summary.written[row.status] += 1
        self.progress.row(row)

    def _keep_beside(self, folder: str, name: str, text: str) -> None:
        if text:
            path = self.results.folder / folder / Path(name).name
            path.parent.mkdir(exist_ok=True)
            path.write_text(text)

    def _lost(self, held: _Held, why: str) -> None:
        """Let points of a lost machine wait for it, or for another; fail those that cost it too often."""
        self._stations.remove(held)
        if held.report is not None:
            self._past.measured += held.report.summary.measured
            self._past.again += held.report.summary.again
            self._deaths.update(seen.id for seen in held.report.points if seen.running)
        for point in reversed(held.points.values()):
            if self._deaths[point.id] >= MOST_DEATHS:
                self._fail(point, f"{held.post.name} was lost {MOST_DEATHS} times while it ran: {why}")
            else:
                self._waiting.setdefault(point.hardware.name, deque()).appendleft(point)

    def _fail(self, point: Point, reason: str) -> None:
        plan = Planner(self.study.measure, self.cache.root).plan(point)
        run = PointRun(plan, self.results.folder / "logs" / f"{point.id}.log")
        row = make_row(self.study.name, run, Outcome("failed", reason), self.cache)
        self.results.append(row)
        self._ended(row)

    def _show(self) -> None:
        reports = [held.report for held in self._stations if held.report is not None]
        summaries = [self._past, *(report.summary for report in reports)]
        self.summary.measured = sum(each.measured for each in summaries)
        self.summary.again = sum(each.again for each in summaries)
        waiting = next(filter(None, (report.waiting_for for report in reports)), "")
        if self._away_since is not None:
            waiting = "a machine with the device to come back"
        self.progress.show([seen for report in reports for seen in report.points], self.summary, waiting)

    def _close(self, now: bool = False) -> None:
        """End all stations, and write the rows of points that are a result already."""
        going = list(self._stations)
        for held in going:
            if now:
                held.post.stop()
            else:
                held.post.end()
        until = self._clock() + STOP_S
        while going and self._clock() < until:
            going = [held for held in going if not self._has_ended(held)]
            if going:
                self._pause(LOOK_S)

    def _has_ended(self, held: _Held) -> bool:
        try:
            report = held.post.report(held.seen)
        except Gone:
            return True
        if report is None:
            return False
        self._note(held, report)
        return report.over
