"""The sweeps of an exploration: what its folder holds before, and batch after batch by one runner."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.console import Console

from dlas.bench.processes.interface import Runner
from dlas.bench.store import cache as caches
from dlas.face.api.running import Steps, announce, appending, runner_of, swept
from dlas.prediction.learning.exploring.tallies import Known
from dlas.sweep.engine.planning import Planner
from dlas.sweep.engine.sweep import Sweep
from dlas.sweep.rows.files import holds_rows
from dlas.sweep.rows.labels import number_of
from dlas.sweep.rows.results import Results, Row, read_rows
from dlas.sweep.study.point import Point
from dlas.sweep.study.study import Study

if TYPE_CHECKING:
    from dlas.prediction.learning.exploring.space import Space

AGAIN = "the same command"


@dataclass
class Sweeps:
    """Sweeps over some of a study's points, one after the other, into one folder and with one runner.

    The runner and the folder are opened with the first point to run, and closed at the end.

    Parameters
    ----------
    study : Study
    folder : Path
    space : Space
        The points that can be measured.
    refused : sequence of Point
        Others that have no row yet: theirs cost nothing, and are written with the first batch.
    budget : int
        Points to measure in all.
    steps : {"spawned", "inline"}
    cache : callable
        Creates the cache.
    console : Console
    options : mapping
        Of :class:`dlas.sweep.engine.sweep.Sweep`.
    measured : int
        Points that are measured so far.
    """

    study: Study
    folder: Path
    space: Space
    refused: Sequence[Point]
    budget: int
    steps: Steps
    cache: Callable[[], caches.Cache]
    console: Console
    options: Mapping[str, Any]
    measured: int
    _stack: ExitStack = field(init=False, default_factory=ExitStack)
    _open: tuple[Runner, caches.Cache, NotingWriter] | None = field(init=False, default=None)

    def __enter__(self) -> Sweeps:
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def measure(self, places: Sequence[int]) -> dict[int, Known]:
        """Measure points, and return what became of them."""
        self._opened()
        told = f"{number_of(len(places), 'more point')}; {self.measured} of {self.budget} are measured"
        self.console.print(f"exploring: {told}", highlight=False)
        ends = self._run([*self.refused, *(self.space.points[place] for place in sorted(places))])
        self.refused = []
        found = {place: ends[own] for place in places if (own := self.space.points[place].id) in ends}
        self.measured += len(found)
        return found

    def finish(self) -> None:
        """Write the rows of the points that cannot be measured, where no batch has taken them along."""
        if self.refused:
            self._run(self.refused)

    def _run(self, points: Sequence[Point]) -> Mapping[str, Known]:
        """Run points, and return what became of all that were run, by their ids."""
        from dlas.face.console.progress import SweepProgress

        runner, cache, writer = self._opened()
        axes = self.study.varying() or ["model"]
        with SweepProgress(len(points), self.console, axes, live=self.steps != "inline") as shown:
            swept(
                Sweep(self.study, writer, cache, runner, shown, points=points, **self.options),
                self.console,
                AGAIN,
            )
        return writer.ends

    def _opened(self) -> tuple[Runner, caches.Cache, NotingWriter]:
        """Return the runner, the cache and the folder's writer, which all batches share."""
        if self._open is None:
            announce(self.study, self.console, self.steps == "inline")
            runner, cache = self._stack.enter_context(runner_of(self.steps)), self.cache()
            results = self._stack.enter_context(appending(self.folder, self.study))
            self._open = runner, cache, NotingWriter(results)
        return self._open


@dataclass
class NotingWriter:
    """Writes rows, and notes what became of their points.

    Parameters
    ----------
    results : Results
    ends : dict of str to Known
        By a point's id.
    """

    results: Results
    ends: dict[str, Known] = field(default_factory=dict)

    @property
    def folder(self) -> Path:
        """The folder for logs and curves."""
        return self.results.folder

    @property
    def existing(self) -> Mapping[str, tuple[str, str | None]]:
        """As of :class:`dlas.sweep.rows.results.Results`."""
        return self.results.existing

    def append(self, row: Row) -> None:
        """Add a row."""
        self.results.append(row)
        self.ends[row.id] = Known.of(row)


@dataclass
class Earlier:
    """What the rows of a folder tell of a study's points.

    Parameters
    ----------
    known : dict of int to Known
        What became of the points whose rows stand, by their places.
    again : list of int
        Points whose rows are of earlier sources or settings, unsettled, or asked for again.
    ids : set of str
        Of all rows.
    """

    known: dict[int, Known] = field(default_factory=dict)
    again: list[int] = field(default_factory=list)
    ids: set[str] = field(default_factory=set)


def earlier_rows(folder: Path, planner: Planner, space: Space, retry: Collection[str]) -> Earlier:
    """Return what a folder's rows tell; none where it has none."""
    found = Earlier()
    places = {point.id: place for place, point in enumerate(space.points)}
    for row in read_rows(folder) if holds_rows(folder) else ():
        found.ids.add(row.id)
        place = places.get(row.id)
        if place is None:
            continue
        if row.stands(planner.plan(space.points[place]).key, retry):
            found.known[place] = Known.of(row)
        else:
            found.again.append(place)
    return found
