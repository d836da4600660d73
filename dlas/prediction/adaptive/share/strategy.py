"""A share of a study's points as a strategy, and what is written of the points that it predicts.

For the fastest it is a race.  Points are built and run a few times, which costs little beside a full
measurement; the full one have those that came near the fastest of their rivals.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import cast

from dlas.errors import InputError, unknown
from dlas.prediction.adaptive.loop import Batch, Loop, LoopBudget, SteppedStrategy
from dlas.prediction.adaptive.share.acquisition import GOALS, first_share
from dlas.prediction.adaptive.share.multiply_adds import macs_of
from dlas.prediction.adaptive.share.outcomes import PointOutcome
from dlas.prediction.adaptive.share.share import (
    RestPredictions,
    batches_of_share,
    budget_of,
    check_covers,
    predict_rest,
)
from dlas.prediction.adaptive.share.space import Architecture, Codes, Space
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
RACE = "race"
"""The folder of what ran a few times, in that of the rows."""
SAMPLES = 3
"""What a point's time in a race is the median of."""
SHORT = {"repeats": SAMPLES, "minimum": 1, "seconds": 2.0, "slices": 1, "layer_repeats": 0}
"""How points are measured in a race."""
NEAR = 1.3
"""What took at most so many times as long as the fastest of its rivals is measured in full."""
USUAL_SHARES = {"rest": 0.1, "fastest": 1.0}
"""Share of the points that is measured, or takes part in the race, where nobody says."""
OF_RACE = f"{SAMPLES} samples in a race, over {NEAR:g} times the fastest of its rivals"
"""Why not to trust the time of a point that was not measured in full."""
OTHER_FOLDER = "Give another `out=`: what follows from the rows of one machine holds for no other."


class ShareStrategy(SteppedStrategy):
    """Measures points that have every value once, then those that tell most of the others, or race.

    Parameters
    ----------
    study : Study
    share : float
        Of the points that can be measured here, above 0 and at most 1.
    goal : str
        One of :data:`dlas.prediction.adaptive.share.acquisition.GOALS`.
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
    raced : dict of int to float
        Seconds that points took in the race.
    again : list of int
        Points whose rows are of earlier sources or settings, unsettled, or asked for again.

    Raises
    ------
    InputError
        If the share is invalid or too small to have every value, or no point can be measured.
    """

    def __init__(
        self, study: Study, share: float, goal: str, cache: Path, retry: Collection[str] = ()
    ) -> None:
        self.places = ("",) if goal == "rest" else ("", RACE)
        super().__init__()
        budget_of(share, 1)
        able, self.refused = _able(study)
        self.study, self.share, self.goal, self.retry = study, share, goal, retry
        self.unsupported = len(self.refused)
        self.space = Space.of(able)
        self.first = first_share(self.space, study.seed, goal)
        check_covers(self.space, share, len(self.first))
        self.known: dict[int, PointOutcome] = {}
        self.raced: dict[int, float] = {}
        self.again: list[int] = []
        self._short = study.with_measure(**SHORT)
        self._planners = {"": Planner(study.measure, cache), RACE: Planner(self._short.measure, cache)}
        self._full: set[int] = set()
        self._places = {point.id: place for place, point in enumerate(able)}

    def take_macs(self, macs: Mapping[Architecture, float]) -> None:
        """Take multiply-adds by dataset and model, before anything is asked for."""
        self.space = Space.of(self.space.points, macs)
        self.first = first_share(self.space, self.study.seed, self.goal)

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
        seed, again = self.study.seed, self.again
        chosen = batches_of_share(
            self.space, self.share, self.first, self.known, goal=self.goal, seed=seed, again=again
        )
        for batch in chosen:
            yield self._batch(batch) if self.goal == "rest" else self._heat(batch)
            for place in batch:
                self.known.setdefault(place, PointOutcome(None, "it has no row"))
        if self.goal == "fastest" and (final := [place for place in self.near() if place not in self._full]):
            yield self._batch(final)
        if self.refused:
            yield self._batch([])

    def near(self) -> list[int]:
        """Return the points that came near the fastest of their rivals in the race."""
        # What an earlier exploration measured in full did not race, and is a rival all the same.
        times = {at: self.raced.get(at, each.seconds) for at, each in self.known.items() if each.seconds}
        return near(times, self.space.rivals)

    def resume(self, rows: Mapping[str, Sequence[Row]]) -> int:
        """Take the rows that the folder holds; those out of date are not relied on."""
        written = {row.id for own in rows.values() for row in own}
        self.refused = [point for point in self.refused if point.id not in written]
        for folder in reversed(self.places):  # what is measured in full counts last, and so most
            current: list[Row] = []
            for row in {row.id: row for row in rows.get(folder, ())}.values():
                if (place := self._places.get(row.id)) is not None:
                    key = self._planners[folder].plan(self.space.points[place]).key
                    if row.stands(key, self.retry):
                        current.append(row)
                    else:
                        self.again.append(place)
            self.tell(current, folder)
        self.again = sorted({*self.again} - {*self.known})
        return len(self.known)

    def tell(self, rows: Sequence[Row], place: str) -> None:
        """Take the rows of points that were asked for."""
        for row in rows:
            if (at := self._places.get(row.id)) is None:
                continue
            found = PointOutcome.of(row)
            if place == "":
                self.known[at] = found
                self._full.add(at)
            else:
                self.known.setdefault(at, found)
                if found.seconds:
                    self.raced[at] = found.seconds

    def line(self) -> str:
        """Return how many points are measured."""
        return f"{len(self.known)} of {self.budget} points are measured" + (
            f", {len(self._full)} of them in full" if self.goal == "fastest" else ""
        )

    def predicted_points(self, rest: RestPredictions) -> list[PredictedPoint]:
        """Return what is written of the points that were predicted."""
        devices: dict[Choice, Device] = {}
        found = []
        for at, place in enumerate(rest.rows.tolist()):
            sure = bool(rest.low[at] == rest.low[at])
            bounds = PredictionInterval(
                value=float(rest.seconds[at]),
                low=float(rest.low[at]) if sure else None,
                high=float(rest.high[at]) if sure else None,
                level=LEVEL if sure else None,
            )
            row = self._unmeasured(place, devices)
            found.append(PredictedPoint(row, {TARGET: bounds}, rest.digest, True, rest.doubts[at]))
        for place in sorted({*self.raced} - self._full):
            bounds = PredictionInterval(value=self.raced[place], low=None, high=None, level=None)
            row = self._unmeasured(place, devices)
            found.append(PredictedPoint(row, {TARGET: bounds}, rest.digest, True, OF_RACE))
        return found

    def _unmeasured(self, place: int, devices: dict[Choice, Device]) -> Row:
        """Return the row of a point that has no time of its own.

        Parameters
        ----------
        devices : dict of Choice to Device
            Those that were described, with those that are from now on.
        """
        point = self.space.points[place]
        if point.hardware not in devices:
            hardware: Hardware = point.hardware.make("hardware")
            devices[point.hardware] = cast(Device, hardware.describe())
        return Row(
            **point.content(),
            id=point.id,
            key="",
            study=self.study.name,
            status=PREDICTED,
            device=devices[point.hardware],
        )

    def summary(self, rest: RestPredictions) -> list[str]:
        """Return what was measured, what was predicted and what was not, a line each."""
        timed = sum(each.seconds is not None for each in self.known.values())
        done = "raced" if self.goal == "fastest" else "measured"
        lines = [f"{done}: {counted(len(self.known))} of {len(self.space):,}, {timed:,} of them with a time"]
        if self.unsupported:
            lines[0] += f"; {counted(self.unsupported)} more unsupported here"
        if self.goal == "fastest":
            full = sum(self.known[place].seconds is not None for place in self._full)
            within = f"within {NEAR:g} times the fastest of their rivals"
            lines.append(f"measured in full: {counted(full)}, those that came {within}")
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
        return Batch(self.study, self._points(places), free=free, shown=True)

    def _heat(self, places: Sequence[int]) -> Batch:
        return Batch(self._short, self._points(places), RACE, keeps_builds=True)

    def _points(self, places: Sequence[int]) -> list[Point]:
        return [self.space.points[place] for place in sorted(places)]


def near(times: Mapping[int, float], rivals: Codes) -> list[int]:
    """Return the points that took at most :data:`NEAR` times as long as the fastest of their rivals.

    Parameters
    ----------
    times : mapping of int to float
        Of points in a race, s.
    rivals : array [n] of int
        Number of each point's group.
    """
    best: dict[int, float] = {}
    for place, seconds in times.items():
        group = int(rivals[place])
        best[group] = min(seconds, best.get(group, seconds))
    return [place for place, seconds in times.items() if seconds <= NEAR * best[int(rivals[place])]]


def measure_share(
    study: Study, folder: Path, share: float | None, session: Session, goal: str = "rest"
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
    if goal not in GOALS:
        raise unknown("goal", goal, GOALS)
    share = USUAL_SHARES[goal] if share is None else share
    budget_of(share, 1)
    session.check(study, folder, advice=OTHER_FOLDER)
    strategy = ShareStrategy(study, share, goal, session.root, session.retry)
    for place in filter(None, strategy.places):
        session.check(study, folder / place, [], advice=OTHER_FOLDER)
    of_others = [point for point in read_predictions(folder) if point.row.study != study.name]
    strategy.take_macs(macs_of(study, strategy.space.points, folder, session))
    session.note(study, folder, len(strategy.space) + strategy.unsupported)
    # Those that are measured in full after a race are no more points than those that took part.
    budget = LoopBudget(points=strategy.budget if goal == "rest" else None)
    Loop(strategy, session, folder, budget, session.display.say).run()
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
