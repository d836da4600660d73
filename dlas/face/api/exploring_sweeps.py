"""The sweeps of an exploration: what its folder holds before, and batch after batch by one session."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from dlas.prediction.learning.exploring.tallies import Known
from dlas.sweep.engine.planning import Planner
from dlas.sweep.engine.session import Session
from dlas.sweep.rows.files import holds_rows
from dlas.sweep.rows.labels import number_of
from dlas.sweep.rows.results import read_rows
from dlas.sweep.study.point import Point
from dlas.sweep.study.study import Study

if TYPE_CHECKING:
    from dlas.prediction.learning.exploring.space import Space


@dataclass
class Sweeps:
    """Sweeps over some of a study's points, one after the other, into one folder and by one session.

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
    session : Session
    measured : int
        Points that are measured so far.
    """

    study: Study
    folder: Path
    space: Space
    refused: Sequence[Point]
    budget: int
    session: Session
    measured: int
    _announced: bool = False

    def measure(self, places: Sequence[int]) -> dict[int, Known]:
        """Measure points, and return what became of them."""
        self._announce()
        told = f"{number_of(len(places), 'more point')}; {self.measured} of {self.budget} are measured"
        self.session.display.say(f"exploring: {told}")
        ends = self._run([*self.refused, *(self.space.points[place] for place in sorted(places))])
        self.refused = []
        found = {place: ends[own] for place in places if (own := self.space.points[place].id) in ends}
        self.measured += len(found)
        return found

    def finish(self) -> None:
        """Write the rows of the points that cannot be measured, where no batch has taken them along."""
        if self.refused:
            self._announce()
            self._run(self.refused)

    def _run(self, points: Sequence[Point]) -> dict[str, Known]:
        """Run points, and return what became of them, by their ids."""
        try:
            rows = self.session.measure(self.study, points, self.folder)
        except KeyboardInterrupt:
            self.session.display.say(f"interrupted; the same command goes on. Rows so far: {self.folder}")
            raise
        return {row.id: Known.of(row) for row in rows}

    def _announce(self) -> None:
        if not self._announced:
            self.session.announce(self.study)
        self._announced = True


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
