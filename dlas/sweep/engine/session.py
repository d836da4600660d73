"""Where and how work is done: a session measures points into a folder, makes them, or plans them.

The caller names the cache, the processes, the jobs and the display once; what is done with a session takes
work alone::

    with Session.open("spawned", cache=folder, jobs=2) as session:
        rows = session.measure(study, points, folder)
"""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Protocol, Self

from dlas.bench.clocks.records import recover
from dlas.bench.processes.outcome import FULL, DiskFull
from dlas.bench.store.cache import Cache, default_root
from dlas.errors import InputError, Unfinished, unknown
from dlas.sweep.engine.checks import ADVICE, check_countable, check_machine, check_trainable, devices
from dlas.sweep.engine.planned import Examples, planned
from dlas.sweep.engine.point_run import Summary
from dlas.sweep.engine.preview import Preview, preview
from dlas.sweep.engine.progress import Display, Progress, Silent
from dlas.sweep.engine.slices import count_kept
from dlas.sweep.engine.sweep import Sweep, SweepOptions
from dlas.sweep.engine.workers import Steps as Steps
from dlas.sweep.engine.workers import Workers
from dlas.sweep.engine.writers import InMemoryRows, NotingRows, RowWriter
from dlas.sweep.rows.files import check_appendable, check_own, holds_rows
from dlas.sweep.rows.labels import points as counted
from dlas.sweep.rows.results import STATUSES, Results, Row, read_rows
from dlas.sweep.study.kept import check_keepable, keep
from dlas.sweep.study.point import Point
from dlas.sweep.study.study import Expansion, Study

SHOWN_EVERY = 4096
"""Points that a study expands to between two looks at how many they are."""
UNCONTAINED = "all steps run in this process: no limit of time or memory holds, and a crash ends the sweep"


class RunsPoints(Protocol):
    """A sweep, wherever its points are measured."""

    def run(self, points: Iterable[Point] | None = None) -> Summary:
        """Run until every point has its row; by default all of the study."""


@dataclass(frozen=True)
class Session:
    """Where and how work is done; :meth:`open` makes one, which a ``with`` statement closes."""

    root: Path
    """The artifact cache, which is made with the first work."""
    workers: Workers
    cache_bytes: int
    """Size that the cache is kept within."""
    jobs: int = 1
    """Network and build steps at a time."""
    retry: frozenset[str] = frozenset()
    """Statuses whose rows are run again."""
    keep_builds: bool = False
    """Keep built libraries after their rows."""
    display: Display = field(default_factory=Silent)
    _folders: dict[Path, Results] = field(default_factory=dict)

    @classmethod
    def open(
        cls,
        steps: Steps = "spawned",
        *,
        cache: str | os.PathLike[str] | None = None,
        cache_gib: float = 20.0,
        jobs: int = 1,
        retry: str | Collection[str] = (),
        keep_builds: bool = False,
        display: Display | None = None,
    ) -> Self:
        """Return a session, of which nothing is written yet.

        Parameters
        ----------
        steps : {"spawned", "forked", "inline"}
            Where the steps run; see :class:`Workers`.
        cache : path, optional
            By default ``$DLAS_CACHE``, or else ``~/.cache/dlas``.
        cache_gib, jobs, retry, keep_builds, display
            As the class has them; ``retry`` may be one status.

        Raises
        ------
        InputError
            If there is no such status, or no such number of jobs.
        """
        statuses = [retry] if isinstance(retry, str) else retry
        for status in statuses:
            if status not in STATUSES:
                raise unknown("status", status, STATUSES)
        if jobs < 1:
            raise InputError(f"jobs = {jobs}: at least one step runs at a time")
        if steps == "inline" and jobs > 1:
            raise InputError(f"in_process runs one step at a time, and jobs = {jobs} asks for more")
        return cls(
            root=default_root() if cache is None else Path(cache),
            workers=Workers(steps),
            cache_bytes=int(cache_gib * 2**30),
            jobs=jobs,
            retry=frozenset(statuses),
            keep_builds=keep_builds,
            display=display or Silent(),
        )

    def __enter__(self) -> Self:
        self.workers.start()
        return self

    def __exit__(self, *_: object) -> None:
        with ExitStack() as stack:
            stack.callback(self.workers.close)
            for results in self._folders.values():
                stack.enter_context(closing(results))
            self._folders.clear()

    def shown_by(self, display: Display) -> Session:
        """Return this session with another display."""
        return replace(self, display=display)

    @property
    def part(self) -> Session:
        """The same for the sweeps of something larger, of which rows are not shown."""
        return self.shown_by(self.display.part())

    def cache(self) -> Cache:
        """Return the cache, which is made if it does not exist."""
        return Cache(self.root, self.cache_bytes)

    def check(
        self,
        study: Study,
        folder: Path | None = None,
        points: Sequence[Point] | None = None,
        *,
        anyway: bool = False,
        advice: str = ADVICE,
    ) -> None:
        """Refuse what cannot be run or written, before anything is; warn of rows of other machines.

        Parameters
        ----------
        folder : Path, optional
            Where its rows are to be written.
        points : sequence of Point, optional
            Those to run, by default all.
        anyway, advice
            As for :func:`dlas.sweep.engine.checks.check_machine`.

        Raises
        ------
        InputError
        """
        if folder is not None:
            check_appendable(folder)
            check_own(folder)
            check_keepable(folder, study.toml())
            for remark in check_machine(self.devices(study), folder, anyway, advice):
                self.display.warn(remark)
        check_countable(study.measure)
        study.check_size()
        self.display.status(f"{study.name}: checking its parts")  # which imports what they need
        try:
            self.check_parts(study)
            check_trainable(study.points() if points is None else points)
        finally:
            self.display.status("")

    def devices(self, study: Study) -> Iterable[tuple[str, Mapping[str, Any]]]:
        """Return the devices that a study can use, each with the name of its hardware."""
        return devices(study.values("hardware"))

    def check_parts(self, study: Study) -> None:
        """Refuse a study with a part that cannot work.

        Raises
        ------
        InputError
        """
        study.check_parts()

    def run(self, study: Study, folder: Path, points: Sequence[Point] | None = None) -> Summary:
        """Run points into a folder, and say how that began and ended; :meth:`check` is to come first.

        Parameters
        ----------
        points : sequence of Point, optional
            By default all of the study.

        Raises
        ------
        Unfinished, KeyboardInterrupt
            If it did not finish; the rows so far stay.
        """
        whole = self.announce(study, points)
        total = whole if points is None else len(points)
        try:
            self.note(study, folder, whole)
            summary = self._sweep(study, self._results(study, folder), points, total)
        except KeyboardInterrupt:
            held = holds_rows(folder) and next(read_rows(folder), None)
            rows = f"Rows so far: {folder}" if held else "No row yet"
            begun = count_kept(folder)
            slices = f". Slices of {counted(begun)} under way are kept" if begun else ""
            self.display.say(f"interrupted; `dlas run {folder}` goes on. {rows}{slices}")
            raise
        statuses = ", ".join(f"{count} {status}" for status, count in sorted(summary.written.items()))
        again = f", {summary.again} of them again" if summary.again else ""
        kept = f"kept from before: {summary.kept.total()}; measured: {summary.measured}{again}. {folder}"
        self.display.say(f"rows written: {statuses or 'none'}; {kept}")
        return summary

    def measure(self, study: Study, points: Sequence[Point], folder: Path) -> list[Row]:
        """Measure points that have no current row in a folder, and return the rows of all of them.

        Raises
        ------
        Unfinished, KeyboardInterrupt
            As for :meth:`run`.
        """
        writer = NotingRows(self._results(study, folder))
        self._sweep(study, writer, points, len(points))
        known, missing = writer.rows, {point.id for point in points} - writer.rows.keys()
        if missing:
            known = known | {row.id: row for row in read_rows(folder) if row.id in missing}
        return [known[point.id] for point in points if point.id in known]

    def make(
        self, study: Study, points: Sequence[Point] | None = None, *, until: str, workspace: str
    ) -> InMemoryRows:
        """Run the steps of points up to one, measure nothing, and return rows; :meth:`check` comes first.

        Parameters
        ----------
        points : sequence of Point, optional
            By default all of the study.
        until : str
            The last step: ``network``, ``kernels``, ``tune`` or ``build``.
        workspace : str
            Name of the folder in the cache that has the logs.

        Raises
        ------
        Unfinished, KeyboardInterrupt
            As for :meth:`run`.
        """
        whole = self.announce(study, points)
        total = whole if points is None else len(points)
        rows = InMemoryRows(self.cache().workspace(workspace))
        try:
            self._sweep(study, rows, points, total, until)
        except KeyboardInterrupt:
            self.display.say(f"interrupted; the same command goes on. Logs so far: {rows.folder}")
            raise
        return rows

    def plan(self, study: Study, points: Sequence[Point] | None = None, *, kernels: bool = False) -> Examples:
        """Return what is known of points without building or measuring them.

        Parameters
        ----------
        points : sequence of Point, optional
            By default all of the study.
        kernels : bool
            Whether to tell the kernels of programs too, for which some compilers lower the networks.

        Raises
        ------
        InputError
            If the study is invalid.
        Unfinished, KeyboardInterrupt
            As for :meth:`run`.
        """
        self.check(study, points=points)
        made = self.make(study, points, until="kernels" if kernels else "network", workspace="predict")
        self.display.status(f"reading {'kernels' if kernels else 'operators'} of {counted(len(made.rows))}")
        try:
            return planned(made.rows, self.cache(), kernels)
        finally:
            self.display.status("")

    def preview(self, study: Study, folder: Path | None, points: Sequence[Point] | None = None) -> Preview:
        """Return what :meth:`run` would do; parameters as there, and the study need not have a folder yet.

        Raises
        ------
        InputError
            If the study is invalid.
        """
        check_countable(study.measure)
        study.check_size()
        expansion = study.expansion()
        every = list(self._expanded(study, expansion))
        chosen = every if points is None else points
        self.check(study, points=chosen)
        if folder is not None:
            check_appendable(folder)
            check_own(folder)
        size = self._told(study, len(every), expansion, points)
        rows = list(read_rows(folder)) if folder is not None and holds_rows(folder) else []
        try:
            found = preview(study.measure, chosen, rows, self.root, self.retry, self.display.status)
        finally:
            self.display.status("")
        return replace(found, size=size)

    def announce(self, study: Study, points: Sequence[Point] | None = None) -> int:
        """Say how large a study is, and what to be warned of; return the number of its points."""
        expansion = study.expansion()
        total = sum(1 for _ in self._expanded(study, expansion))
        self.display.say(self._told(study, total, expansion, points))
        if self.workers.inline:
            self.display.say(UNCONTAINED)
        return total

    def _expanded(self, study: Study, expansion: Expansion) -> Iterator[Point]:
        """Yield the points of a study, and show how many there are so far."""
        for count, point in enumerate(study.points(expansion), 1):
            if count % SHOWN_EVERY == 0:
                self.display.status(f"{study.name}: {count:,} of {expansion.total:,} points")
            yield point
        self.display.status("")

    def _told(self, study: Study, total: int, expansion: Expansion, points: Sequence[Point] | None) -> str:
        """Warn of skip rules that match nothing, and return the line that tells how large a study is."""
        for warning in study.unmatched(expansion):
            self.display.warn(warning)
        chosen = "" if points is None else f"; {counted(len(points))} chosen"
        return _size(study, total, expansion) + chosen

    def note(self, study: Study, folder: Path, points: int) -> None:
        """Keep a study in its results folder with the number of its points, all of which rows are to cover.

        Raises
        ------
        InputError
            If the folder cannot be written to.
        """
        existing = self._results(study, folder).existing.keys()
        own = {point.id for point in study.points()} if existing else set()
        keep(folder, study.toml(), points, len(existing - own))

    def _results(self, study: Study, folder: Path) -> Results:
        """Return the writer of a folder's rows, which stays open and keeps the study."""
        self.cache()  # a cache that cannot be used is refused before anything is written
        if folder not in self._folders:
            self._folders[folder] = Results(folder)
        keep(folder, study.toml())
        return self._folders[folder]

    def _sweep(
        self,
        study: Study,
        writer: RowWriter,
        points: Sequence[Point] | None,
        total: int,
        until: str = "measure",
    ) -> Summary:
        """Run points, and return how they ended."""
        for line in recover():
            self.display.say(line)
        axes = study.varying() or ["model"]
        with self._ending(), self.display.sweep(total, axes, self.workers.inline) as shown:
            options = SweepOptions(self.jobs, self.retry, self.keep_builds, until)
            return self.make_sweep(study, writer, shown, options).run(points)

    def make_sweep(
        self, study: Study, writer: RowWriter, progress: Progress, options: SweepOptions
    ) -> RunsPoints:
        """Return what runs the points of a study."""
        return Sweep(study, writer, self.cache(), self.workers.runner(), progress, options)

    @contextmanager
    def _ending(self) -> Iterator[None]:
        """End all steps where a sweep does not finish, and say why in words.

        Raises
        ------
        Unfinished
            If the disk is full, or the process that starts the steps was killed.
        """
        from dlas.bench.processes.server import ServerDied

        try:
            yield
        except BaseException as error:
            self.workers.close()
            if isinstance(error, ServerDied):
                raise Unfinished(f"{error}; run the study again to go on") from None
            if isinstance(error, DiskFull) or (isinstance(error, OSError) and error.errno in FULL):
                full = f"the disk is full ({error}); free some room and run the study again"
                raise Unfinished(full) from None
            raise


def _size(study: Study, total: int, expansion: Expansion) -> str:
    """Return the line that accounts for every point of the cross product, or of the draws."""
    skipped = sum(expansion.skipped.values())
    line = f"{study.name}: {counted(total)}"
    if study.sample:
        drawn = [axis for axis in study.varying() if axis in study.sample.axes]
        line += f" of {study.sample.points:,} draws of {', '.join(drawn or study.sample.axes)}"
    if skipped or expansion.merged:
        of = "drawn" if study.sample else "in the cross product"
        line += f" ({expansion.total} {of}, {skipped} skipped, {expansion.merged} merged)"
    return line
