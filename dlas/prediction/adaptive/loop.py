"""The one loop of adaptive measuring: ask a strategy for points, measure them, tell it their rows.

A strategy says what to measure; the loop owns the rest: the session that measures, the budget, the record of
how far it is, what was measured before an interruption, and what is said of it.
"""

from __future__ import annotations

import math
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import ClassVar

from dlas.prediction.adaptive.records import RunRecord, write_record
from dlas.sweep.engine.session import Session
from dlas.sweep.rows.files import holds_rows
from dlas.sweep.rows.labels import number_of
from dlas.sweep.rows.results import Row, read_rows
from dlas.sweep.study.point import Point
from dlas.sweep.study.study import Study

SAVED_S = 5.0
"""Seconds between two records of a loop that measures nothing."""


@dataclass(frozen=True)
class Batch:
    """Points to measure together; without any, the loop notes how far it is, and asks again."""

    study: Study
    """What they are points of."""
    points: Sequence[Point] = ()
    """The budget may cut them short."""
    place: str = ""
    """The folder for their rows, in that of the loop."""
    free: Sequence[Point] = ()
    """Others that cost nothing, because they are unsupported at once."""
    owed: bool = False
    """Measured even where the budget is used: what shows how good the result is."""
    shown: bool = False
    """Whether rows are shown one by one."""
    keeps_builds: bool = False
    """Whether builds stay in the cache, because the same points are measured again."""


class Strategy(ABC):
    """Says what to measure next.

    The life of a strategy, which holds no file and no process:

    1. It is made with what was asked for; nothing was measured.
    2. :meth:`resume` gives it the rows that an earlier loop left in :attr:`places`, perhaps none.  It must
       then not ask for them again, so that a loop that was interrupted goes on.
    3. :meth:`ask` returns the points to measure next, and :meth:`tell` gives it their rows; a point that
       failed has a row, too.  That goes on until it asks for nothing, or the budget is used.  A batch that
       the budget or an interruption cut short is told in part.
    4. What it found is in its own attributes.

    Equal strategies that were told the same ask for the same.  :func:`dlas.testing.check_strategy` holds one
    to this.
    """

    places: tuple[str, ...] = ("",)
    """The folders with its rows, in that of the loop."""
    file: ClassVar[str] = ""
    """The file in that folder for :meth:`record`; empty for none."""

    @abstractmethod
    def ask(self) -> Batch | None:
        """Return the points to measure next, None where there are no more."""

    @abstractmethod
    def tell(self, rows: Sequence[Row], place: str) -> None:
        """Take the rows of points that were asked for."""

    @abstractmethod
    def line(self) -> str:
        """Return how far it is, in one line."""

    def resume(self, rows: Mapping[str, Sequence[Row]]) -> int:
        """Take the rows of earlier loops, by place, and return how many count for the budget.

        By default all of them do, as if they had been asked for.
        """
        for place, own in rows.items():
            self.tell(own, place)
        return sum(map(len, rows.values()))

    def record(self, spent_s: float, finished: bool) -> RunRecord | None:
        """Return what an interrupted loop needs beside its rows, None where that is nothing yet."""
        return None


class SteppedStrategy(Strategy):
    """A strategy that is written as one generator of batches, whose rows are there when it goes on.

    Attributes
    ----------
    rows : dict of str to dict of str to Row
        All rows, by place and by the point's id.
    """

    def __init__(self) -> None:
        self.rows: dict[str, dict[str, Row]] = {place: {} for place in self.places}
        self._steps: Iterator[Batch] | None = None

    @abstractmethod
    def batches(self) -> Iterator[Batch]:
        """Yield what to measure, from what is known on."""

    def ask(self) -> Batch | None:
        """Return the points to measure next, None where there are no more."""
        if self._steps is None:
            self._steps = self.batches()
        return next(self._steps, None)

    def tell(self, rows: Sequence[Row], place: str) -> None:
        """Take the rows of points that were asked for."""
        self.rows.setdefault(place, {}).update({row.id: row for row in rows})


@dataclass
class LoopBudget:
    """What a loop may spend, with what it spent before it was interrupted."""

    points: int | None = None
    """The most to measure in all."""
    minutes: float = math.inf
    """The most that it may take in all."""
    before_s: float = 0.0
    """Seconds that it took before."""
    now: Callable[[], float] = time.monotonic
    """Returns seconds since any moment."""
    measured: int = 0
    """Points so far."""
    _began: float = field(init=False)

    def __post_init__(self) -> None:
        self._began = self.now()

    @property
    def spent_s(self) -> float:
        """Seconds until now."""
        return self.before_s + self.now() - self._began

    @property
    def left_s(self) -> float:
        """Seconds that are left; negative where it took longer."""
        return 60 * self.minutes - self.spent_s

    def affordable(self, count: int) -> int:
        """Return how many of so many points may still be measured."""
        if self.left_s <= 0:
            return 0
        return count if self.points is None else min(count, max(0, self.points - self.measured))


@dataclass
class Loop:
    """Asks a strategy, measures, and tells it, until nothing is asked for or the budget is used."""

    strategy: Strategy
    session: Session
    """Measures."""
    folder: Path
    budget: LoopBudget = field(default_factory=LoopBudget)
    say: Callable[[str], None] = lambda line: None
    """Takes a line where the loop is interrupted."""
    _saved: float = 0.0
    _announced: Study | None = None

    def run(self) -> None:
        """Go on until the end.

        Raises
        ------
        Unfinished, KeyboardInterrupt
            If it did not get there; the same call goes on.
        """
        self.budget.measured += self.strategy.resume(self._earlier())
        finished = False
        self.session.display.status(self.strategy.line())
        try:
            self._measure_all()
            finished = True
        except KeyboardInterrupt:
            self.say(f"interrupted; the same command goes on: {self.strategy.line()}")
            raise
        finally:
            self.session.display.status("")
            self._save(finished)

    def _measure_all(self) -> None:
        while (batch := self.strategy.ask()) is not None:
            count = len(batch.points)
            points = batch.points[: count if batch.owed else self.budget.affordable(count)]
            if batch.points and not points and not batch.free:
                return
            if points or batch.free:
                self._save()
                self._measure(batch, points)
            if time.monotonic() - self._saved > SAVED_S:
                self._save()
            self.session.display.status(self.strategy.line())

    def _measure(self, batch: Batch, points: Sequence[Point]) -> None:
        """Measure a batch and tell the strategy, also of the rows before an interruption."""
        session = self.session if batch.shown else self.session.part
        if batch.keeps_builds:
            session = replace(session, keep_builds=True)
        if batch.shown:
            self._announce(batch.study, len(points))
        asked, folder = [*batch.free, *points], self.folder / batch.place
        try:
            rows = session.measure(batch.study, asked, folder)
        except KeyboardInterrupt:
            ids = {point.id for point in asked}
            self._tell(batch, [row for row in self._rows(batch.place) if row.id in ids])
            raise
        self._tell(batch, rows)

    def _announce(self, study: Study, count: int) -> None:
        """Say how large a study is, once, and how many points are next."""
        if self._announced is not study:
            self.session.announce(study)
        self._announced = study
        if count and self.budget.points is not None:
            done = f"{self.budget.measured} of {self.budget.points} are measured"
            self.session.display.say(f"next: {number_of(count, 'more point')}; {done}")

    def _tell(self, batch: Batch, rows: Sequence[Row]) -> None:
        free = {point.id for point in batch.free}
        self.budget.measured += sum(row.id not in free for row in rows)
        self.strategy.tell(rows, batch.place)

    def _earlier(self) -> dict[str, list[Row]]:
        return {place: self._rows(place) for place in self.strategy.places}

    def _rows(self, place: str) -> list[Row]:
        """Return the rows that are in one of the folders."""
        folder = self.folder / place
        return list(read_rows(folder)) if holds_rows(folder) else []

    def _save(self, finished: bool = False) -> None:
        """Write how far it is."""
        record = self.strategy.record(self.budget.spent_s, finished)
        if record is not None:
            write_record(self.folder / self.strategy.file, record)
        self._saved = time.monotonic()
