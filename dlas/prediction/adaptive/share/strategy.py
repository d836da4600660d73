"""A share of a study's points as a strategy, and what is written of the points that it predicts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import cast

from dlas.errors import InputError
from dlas.prediction.adaptive.loop import Batch, Loop, LoopBudget, SteppedStrategy
from dlas.prediction.adaptive.share.acquisition import first_share
from dlas.prediction.adaptive.share.outcomes import PointOutcome
from dlas.prediction.adaptive.share.share import (
    RestPredictions,
    batches_of_share,
    budget_of,
    check_covers,
    predict_rest,
)
from dlas.prediction.adaptive.share.space import Space
from dlas.prediction.learning.intervals import LEVEL
from dlas.stack import Hardware
from dlas.sweep.engine.planning import Planner
from dlas.sweep.engine.session import Session
from dlas.sweep.rows.labels import number_of
from dlas.sweep.rows.labels import points as counted
from dlas.sweep.rows.predictions import (
    PREDICTED,
    PredictedPoint,
    PredictionInterval,
    read_predictions,
    write_predictions,
)
from dlas.sweep.rows.results import Row
from dlas.sweep.rows.schema import Device
from dlas.sweep.study.point import Choice, Point
from dlas.sweep.study.study import Study

ENOUGH = 2
"""Times as many points with a time as have every value once: with fewer, most values were measured once."""
TARGET = "latency_s"
OTHER_FOLDER = "Give another `out=`: what follows from the rows of one machine holds for no other."


class ShareStrategy(SteppedStrategy):
    """Measures points that have every value once, then those that tell most of the others.

    Parameters
    ----------
    study : Study
    share : float
        Of the points that can be measured here, above 0 and at most 1.
    cache : Path
        The artifact cache, on which keys of rows depend.
    retry : collection of str
        Statuses whose rows are measured again.

    Attributes
    ----------
    space : Space
        The points that can be measured.
    refused : list of Point
        Others without a row: theirs cost nothing, and are written with the first batch.
    known : dict of int to PointOutcome
        What became of points, by their places in the space.
    again : list of int
        Points whose rows are of earlier sources or settings, unsettled, or asked for again.

    Raises
    ------
    InputError
        If the share is invalid or too small to have every value, or no point can be measured.
    """

    def __init__(self, study: Study, share: float, cache: Path, retry: Collection[str] = ()) -> None:
        super().__init__()
        budget_of(share, 1)
        able, self.refused = _able(study)
        self.study, self.share, self.retry = study, share, retry
        self.unsupported = len(self.refused)
        self.space = Space.of(able)
        self.first = first_share(self.space, study.seed)
        check_covers(self.space, share, len(self.first))
        self.known: dict[int, PointOutcome] = {}
        self.again: list[int] = []
        self._planner = Planner(study.measure, cache)
        self._places = {point.id: place for place, point in enumerate(able)}

    @property
    def budget(self) -> int:
        """Points to measure in all."""
        return budget_of(self.share, len(self.space))

    @property
    def outdated(self) -> int:
        """Points whose rows are out of date, and were not measured again."""
        return len({*self.again} - {*self.known})

    def batches(self) -> Iterator[Batch]:
        """Yield the batches of the share; each counts as tried, also where it has no row."""
        chosen = batches_of_share(
            self.space, self.share, self.first, self.known, seed=self.study.seed, again=self.again
        )
        for batch in chosen:
            yield self._batch(batch)
            for place in batch:
                self.known.setdefault(place, PointOutcome(None, "it has no row"))
        if self.refused:
            yield self._batch([])

    def resume(self, rows: Mapping[str, Sequence[Row]]) -> int:
        """Take the rows that the folder holds; those out of date are not relied on."""
        written = {row.id: row for own in rows.values() for row in own}
        self.refused = [point for point in self.refused if point.id not in written]
        for name, place in self._places.items():
            row = written.get(name)
            if row is None:
                continue
            if row.stands(self._planner.plan(self.space.points[place]).key, self.retry):
                self.known[place] = PointOutcome.of(row)
            else:
                self.again.append(place)
        return len(self.known)

    def tell(self, rows: Sequence[Row], place: str) -> None:
        """Take the rows of points that were asked for."""
        self.known |= {self._places[row.id]: PointOutcome.of(row) for row in rows if row.id in self._places}

    def line(self) -> str:
        """Return how many points are measured."""
        return f"{len(self.known)} of {self.budget} points are measured"

    def predicted_points(self, rest: RestPredictions) -> list[PredictedPoint]:
        """Return what is written of the points that were predicted."""
        devices: dict[Choice, Device] = {}
        found = []
        for at, place in enumerate(rest.rows.tolist()):
            point = self.space.points[place]
            if point.hardware not in devices:
                hardware: Hardware = point.hardware.make("hardware")
                devices[point.hardware] = cast(Device, hardware.describe())
            row = Row(
                **point.content(),
                id=point.id,
                key="",
                study=self.study.name,
                status=PREDICTED,
                device=devices[point.hardware],
            )
            sure = bool(rest.low[at] == rest.low[at])
            bounds = PredictionInterval(
                value=float(rest.seconds[at]),
                low=float(rest.low[at]) if sure else None,
                high=float(rest.high[at]) if sure else None,
                level=LEVEL if sure else None,
            )
            found.append(PredictedPoint(row, {TARGET: bounds}, rest.digest, True, rest.doubts[at]))
        return found

    def summary(self, rest: RestPredictions) -> list[str]:
        """Return what was measured, what was predicted and what was not, a line each."""
        timed = sum(each.seconds is not None for each in self.known.values())
        lines = [
            f"measured: {counted(len(self.known))} of {len(self.space):,}, {timed:,} of them with a time"
        ]
        if self.unsupported:
            lines[0] += f"; {counted(self.unsupported)} more unsupported here"
        if outdated := self.outdated:
            lines.append(
                f"out of date: {number_of(outdated, 'row')} of earlier sources or settings, which nothing "
                "here relies on; tables still show them"
            )
        if len(rest.rows):
            intervals = f"intervals of {LEVEL:.0%}" if (rest.low == rest.low).any() else "no intervals"
            lines.append(f"predicted: {counted(len(rest.rows))}, with {intervals}")
            if rest.error is not None:
                own = f"measured points, each predicted from the others, err by {rest.error:.1%} on average"
                lines[-1] += f"; {own}"
            if timed < ENOUGH * len(self.first):
                lines.append(
                    f"few: {counted(timed)} with a time, and it takes {len(self.first):,} to have every "
                    "value once. Predictions are rough, and what looks fastest may not be; a larger share "
                    "goes on from here"
                )
        doubtful = sum(map(bool, rest.doubts))
        if doubtful:
            lines.append(
                f"in doubt: {counted(doubtful)}, because of values with which few points have a time"
            )
        for reason, count in Counter(rest.left_out.values()).most_common():
            lines.append(f"not predicted: {counted(count)}: {reason}")
        return lines

    def _batch(self, places: Sequence[int]) -> Batch:
        free, self.refused = self.refused, []
        points = [self.space.points[place] for place in sorted(places)]
        return Batch(self.study, points, free=free, shown=True)


def measure_share(
    study: Study, folder: Path, share: float, session: Session
) -> tuple[ShareStrategy, RestPredictions]:
    """Measure a share of a study into a folder, write predictions of the others, and return both.

    Predictions of other studies in the folder stay.

    Raises
    ------
    InputError
        If the study or the share is invalid, or the folder holds rows of another machine.
    Unfinished
        If no measured point has a time, or a sweep did not finish.
    """
    budget_of(share, 1)
    session.check(study, folder, advice=OTHER_FOLDER)
    strategy = ShareStrategy(study, share, session.root, session.retry)
    of_others = [point for point in read_predictions(folder) if point.row.study != study.name]
    session.note(study, folder, len(strategy.space) + strategy.unsupported)
    Loop(strategy, session, folder, LoopBudget(points=strategy.budget), session.display.say).run()
    rest = predict_rest(strategy.space, strategy.known)
    write_predictions(folder, [*of_others, *strategy.predicted_points(rest)])
    return strategy, rest


def _able(study: Study) -> tuple[list[Point], list[Point]]:
    """Return the points that can be measured here, and those that are unsupported at once.

    Raises
    ------
    InputError
        If none can be measured.
    """
    reasons: dict[tuple[Choice, Choice, str], str | None] = {}
    able: list[Point] = []
    refused: list[Point] = []
    for point in study.points():
        key = point.hardware, point.compiler, point.task
        if key not in reasons:
            reasons[key] = point.unsupported()
        (refused if reasons[key] else able).append(point)
    if not able:
        raise InputError(f"no point of the study can be measured here: {next(iter(reasons.values()))}")
    return able, refused
