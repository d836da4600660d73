"""Rounds of networks for a predictor of a device: each has those that teach it most; then it is tried."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import cast

import numpy as np
import pandas as pd

from dlas.analysis.matching import timed
from dlas.bench.measuring.machine import Machine
from dlas.errors import InputError, Unfinished
from dlas.prediction.adaptive.device import lines
from dlas.prediction.adaptive.device.budget import (
    CANDIDATES,
    FIRST,
    MORE_SHARE,
    PROBED,
    check_number,
    check_pace,
    end_s,
    on_more_threads,
    points_of_round,
    stop_reason,
)
from dlas.prediction.adaptive.device.committee import Committee, choose, seconds_to_measure
from dlas.prediction.adaptive.device.record import (
    AGAIN,
    FILE,
    MORE_THREADS,
    PLACES,
    ROWS,
    UNSEEN,
    DeviceRequest,
    DeviceRun,
    opened,
)
from dlas.prediction.adaptive.device.studies import DeviceStudies, examine
from dlas.prediction.adaptive.loop import Batch, Loop, LoopBudget, SteppedStrategy
from dlas.prediction.learning import stored
from dlas.prediction.learning.examples import example_of, operators_of
from dlas.prediction.learning.fitting import quiet
from dlas.prediction.learning.intervals import with_networks
from dlas.prediction.learning.noise import noise_floor
from dlas.prediction.learning.points import NETWORK, Points, usable_points
from dlas.prediction.learning.predictions import MOST_UNKNOWN, predict
from dlas.prediction.learning.settings import EvaluationProtocol, evaluate_settings, fit_settings
from dlas.prediction.learning.splits import Criterion
from dlas.prediction.predictors.additive import Additive
from dlas.prediction.predictors.boosted_kernels import BoostedKernels
from dlas.stack.types import Say
from dlas.sweep.engine.session import Session, Steps
from dlas.sweep.rows.example import Example
from dlas.sweep.rows.frame import frame_of
from dlas.sweep.rows.labels import duration
from dlas.sweep.rows.labels import points as counted
from dlas.sweep.rows.layer_times import timed_layers
from dlas.sweep.rows.results import Row
from dlas.sweep.study import parts
from dlas.sweep.study.point import Point

PART = "boosted_kernels"
HELD_OUT = 10
"""Parts of the networks, each of which is held out in turn for the intervals."""
MEMBER = BoostedKernels(rounds=100)
"""The predictor of a committee: with fewer trees than the last one, which has a tenth of the fits."""
MOST_JOBS = 4
"""Network and build steps at a time, on machines with many cores."""
LAST_FITS = 8.0
"""The last fit and its evaluation take so many times as long as a committee."""
STEPS = ("build_s", "memory_s", "check_s", "measure_s")
"""Columns of the seconds that measuring a candidate takes: its network is there already."""


class DeviceStrategy(SteppedStrategy):
    """Measures networks until the minutes are used or more gain nothing, fits a predictor, and tries it.

    Parameters
    ----------
    folder : Path
        Of the predictor, and of the rows.
    asked : DeviceRequest
    studies : DeviceStudies
    session : Session
        Plans candidates.
    budget : LoopBudget
        Of minutes.
    say : callable
        Takes a line for each round.

    Attributes
    ----------
    predicted : DataFrame
        Networks that were never fitted, with predictions; empty where none can be predicted.
    failed : Counter
        Numbers of points without a prediction or a measurement, by reason.
    """

    places = PLACES
    file = FILE

    def __init__(
        self,
        folder: Path,
        asked: DeviceRequest,
        studies: DeviceStudies,
        session: Session,
        budget: LoopBudget,
        say: Say,
    ) -> None:
        super().__init__()
        self.folder, self.asked, self.studies = folder, asked, studies
        self.session, self.budget, self.say = session, budget, say
        self.predicted, self.failed = pd.DataFrame(), Counter[str]()
        self._plans: dict[str, Example | None] = {}
        self._unplanned: Counter[str] = Counter()
        self._fit_s = 0.0

    @property
    def tried(self) -> Mapping[str, Row]:
        """The rows of all points that were to be fitted to, whatever became of them, by id."""
        return self.rows[ROWS]

    def line(self) -> str:
        """Return how many points are measured, and how many of the minutes are spent."""
        spent = f"{duration(self.budget.spent_s)} of {self.budget.minutes:g} min"
        return f"{counted(len(self.tried))} so far, {spent}"

    def record(self, spent_s: float, finished: bool) -> DeviceRun:
        """Return what was asked for, and the seconds, which a process that is killed could not tell."""
        return DeviceRun(asked=self.asked, spent_s=spent_s, finished=finished)

    def batches(self) -> Iterator[Batch]:
        """Yield points as they are drawn, those that teach most, and the networks never seen.

        Raises
        ------
        Unfinished
            If the minutes turn out too few, or nothing can be measured or fitted.
        """
        if not (self.folder / stored.FILE).exists():
            yield from self.rounds()
            yield from self._more_threads()
            self._fit()
        yield from self._tries(stored.read(self.folder))

    def rounds(self) -> Iterator[Batch]:
        """Yield the points that a predictor is fitted to."""
        yield from self._first()
        errors: list[float] = []
        began_s, before = self.budget.spent_s, len(self.tried)
        while True:
            read = self.points()
            known = read.merged(self.asked.target)
            committee = self._committee(known)
            # Those that were chosen are the hard ones: on the first, which were not, errors can be compared.
            errors.append(float(committee.errors[:FIRST].mean()))
            added = len(self.tried) - before
            point_s = (self.budget.spent_s - began_s) / added if added else self._steps_s()
            more = on_more_threads(len(known)) if self.asked.more_threads else 0
            left_s = self.budget.left_s - end_s(point_s, len(self.asked.unseen), self._fit_s, more)
            each_s = point_s * (1 + MORE_SHARE) if more else point_s
            count = points_of_round(len(known), int(left_s / each_s) - 1)  # one of them is measured again
            floor, pairs = noise_floor(read.frame, self.asked.target), len(read) - len(known)
            reason = stop_reason(errors, floor, pairs) or ("" if count else "the rest is for the end")
            self.say(lines.standing(read, len(known), errors, floor, self.budget.left_s, reason))
            chosen = [] if reason else self._chosen(committee, known, count)
            if not chosen:
                return
            yield self._batch(chosen, ROWS)
            yield from self._again()

    def points(self, places: Sequence[str] = (ROWS, AGAIN)) -> Points:
        """Return all measurements that a predictor can be fitted to.

        Parameters
        ----------
        places : sequence of str
            Folders of their rows; by default on the usual number of threads.

        Raises
        ------
        Unfinished
            If there are none.
        """
        rows = [row for place in places for row in self.rows[place].values()]
        try:
            return usable_points(map(example_of, rows), self.asked.target, kernels=True)
        except InputError as error:
            raise Unfinished(f"nothing to fit a predictor to: {error}: {self._why()}") from None

    def measured(self) -> dict[str, float]:
        """Return what was measured of the networks never seen, by id."""
        rows = frame_of(self.rows[UNSEEN].values())
        usable = rows[timed(rows)]
        return dict(zip(usable["id"], usable[self.asked.target], strict=True))

    def _batch(self, points: Sequence[Point], place: str) -> Batch:
        # How long a batch takes has been weighed against the minutes: all of it is owed.
        return Batch(self.studies.study(place), points, place, owed=True)

    def _again(self) -> Iterator[Batch]:
        """Yield one of the points a second time, which tells the noise floor."""
        done = self.rows[AGAIN]
        left = [row for row in self.tried.values() if usable(row) and row.id not in done]
        if left:
            row = left[int(np.random.default_rng((self.asked.seed, len(done))).integers(len(left)))]
            yield self._batch([Point.of(asdict(row))], AGAIN)

    def _more_threads(self) -> Iterator[Batch]:
        """Yield some of the points on more threads, where these were asked for."""
        if self.asked.more_threads is None:
            return
        known = [Point.of(asdict(row)) for row in self.tried.values() if usable(row)]
        order = np.random.default_rng(self.asked.seed).permutation(len(known))
        chosen = [known[place] for place in sorted(order[: on_more_threads(len(known))])]
        points = map(self.studies.with_more_threads, chosen)
        if left := [point for point in points if point.id not in self.rows[MORE_THREADS]]:
            self.say(lines.with_more_threads(len(left), self.asked.more_threads))
            yield self._batch(left, MORE_THREADS)

    def _first(self) -> Iterator[Batch]:
        """Yield points as they are drawn, until there are enough to fit a predictor to."""
        while True:
            known = sum(map(usable, self.tried.values()))
            if known >= FIRST:
                return
            if known:
                more = FIRST if self.asked.more_threads else 0
                check_pace(self.budget, known, self._steps_s(), len(self.asked.unseen), more)
            elif len(self.tried) >= FIRST:
                self.points()  # which says why none of them can be used
            tried = len(self.tried)
            count = PROBED - tried if tried < PROBED else FIRST - (known or tried)
            left = [point for point in self.studies.draws(tried + count) if point.id not in self.tried]
            if not left:
                raise Unfinished(
                    f"{counted(known)} of {tried} can be used, no others can be drawn, and a predictor "
                    f"is fitted to {FIRST} or more: {self._why()}"
                )
            self.say(lines.as_drawn(len(left)))
            yield self._batch(left, ROWS)

    def _why(self) -> str:
        """Return the first reason of a point that cannot be used."""
        reasons = (row.reason for row in self.tried.values() if not usable(row))
        return next(filter(None, reasons), "nobody knows why")

    def _committee(self, known: Points) -> Committee:
        """Return the committee, and note how long its fits took.

        Raises
        ------
        Unfinished
            If the points are too few, or too much alike.
        """
        began_s = self.budget.spent_s
        try:
            committee = Committee.of(MEMBER, [Additive()], known, self.asked.target, self.asked.seed)
        except InputError as error:
            raise Unfinished(f"no predictor can be fitted: {error}") from None
        self._fit_s = LAST_FITS * (self.budget.spent_s - began_s)
        return committee

    def _steps_s(self) -> float:
        """Return how long the steps of a point took, on average."""
        took = [cast(Mapping[str, float], row.seconds) for row in self.tried.values() if usable(row)]
        return float(np.mean([sum(seconds.values()) for seconds in took]))

    def _chosen(self, committee: Committee, known: Points, count: int) -> list[Point]:
        """Return the candidates that the committee disagrees most on for the seconds they cost."""
        drawn, candidates = self._candidates(CANDIDATES * count)
        if candidates is None:
            self.say(lines.none_left(len(drawn), self._unplanned))
            return []
        disagreement = committee.disagreement(candidates)
        steps = known.frame[[name for name in STEPS if name in known.frame]]
        seconds = seconds_to_measure(known, steps.sum(axis=1).to_numpy(dtype=np.float64), candidates)
        chosen = choose(disagreement, seconds, count)
        others = np.setdiff1d(np.arange(len(candidates)), chosen)
        self.say(lines.chosen(disagreement[chosen], disagreement[others], seconds[chosen]))
        return [drawn[candidates.frame["id"].iloc[index]] for index in chosen]

    def _candidates(self, count: int) -> tuple[dict[str, Point], Points | None]:
        """Return points without a row, and what is known of them: those of earlier rounds, and new ones.

        None where nothing is known of any, because none is left or none can be planned.
        """
        gone = len({*self.tried, *(name for name, plan in self._plans.items() if plan is None)})
        points = self.studies.draws(gone + count)
        drawn = {point.id: point for point in points if point.id not in self.tried}
        if new := [point for name, point in drawn.items() if name not in self._plans]:
            made = self.session.part.plan(self.studies.study(ROWS), new, kernels=True)
            self._plans |= dict.fromkeys((point.id for point in new), None)
            self._plans |= {each.row.id: each for each in made.points}
            self._unplanned += made.failed
        known = [plan for plan in map(self._plans.get, drawn) if plan is not None]
        if not known:
            return drawn, None
        return drawn, Points.of(known)

    def _fit(self) -> None:
        """Fit a predictor to what was measured, and write it.

        Raises
        ------
        Unfinished
            If it cannot be fitted to that.
        """
        known = self.points((ROWS, AGAIN, MORE_THREADS))
        predictor = parts.make("predictor", PART, {})
        self.say(f"fitting {PART} to {counted(known.frame['id'].nunique())}")
        protocol = EvaluationProtocol(self.asked.target, Criterion(NETWORK, parts=HELD_OUT), self.asked.seed)
        try:
            evaluated = evaluate_settings({PART: predictor}, known, protocol, quiet)
            fitted = fit_settings(PART, predictor, evaluated, protocol, quiet)
        except InputError as error:
            raise Unfinished(f"no predictor can be fitted: {error}") from None
        stored.write(self.folder, *fitted, beside=True)
        for each in evaluated:
            self.say(lines.held_out(each.first.overall(), each.name if len(evaluated) > 1 else ""))

    def _tries(self, fitted: stored.StoredPredictor) -> Iterator[Batch]:
        """Yield the networks that were never seen, in turns with points that were fitted."""
        unseen = self.studies.unseen()
        made = self.session.part.plan(self.studies.study(UNSEEN), unseen, kernels=True)
        self.failed = made.failed
        if not made.points:
            return
        asked = Points.of(made.points)
        found = predict(fitted, asked, anyway=True).frame(asked).set_index("id", drop=False)
        told = [point for point in unseen if point.id in found.index]
        self.predicted = found.loc[[point.id for point in told]].reset_index(drop=True)
        for _, own in itertools.groupby(told, key=lambda point: point.model):
            yield self._batch(list(own), UNSEEN)
            yield from self._again()
        self._recalibrate(fitted, asked)
        rows = frame_of(self.rows[UNSEEN].values())
        left_out = rows[~timed(rows)]["reason"].fillna("it has no time")
        self.failed += Counter(left_out.astype(str))

    def _recalibrate(self, fitted: stored.StoredPredictor, asked: Points) -> None:
        """Let the networks never seen say how wide intervals are, too.

        Parameters
        ----------
        asked : Points
            Of these networks, as they were predicted.
        """
        measured, key = self.measured(), fitted.covering(next(iter(asked.settings())))
        if key is None:
            return
        setting, own = fitted.setting(key), fitted.fitted[key]
        tried = asked.take(np.flatnonzero(asked.frame["id"].isin(measured)))
        if setting.half_width is None or setting.tried_after or not len(tried):
            return
        samples = tried.samples(fitted.part, self.asked.target, [""] * len(tried))
        predicted, unknown, widths = setting.told(own, samples)
        times = tried.frame["id"].map(measured).to_numpy(dtype=np.float64)
        off = pd.Series(
            np.log(times / predicted) * setting.half_width / widths, tried.frame["model"].astype(str)
        )
        squares = (off**2)[unknown <= MOST_UNKNOWN].groupby(level=0).mean()
        width = with_networks(setting.half_width, np.sqrt(squares.to_numpy()))
        if not len(squares):
            return
        self.say(lines.recalibrated(setting.half_width, width, len(squares)))
        now = setting.model_copy(update={"half_width": width, "tried_after": len(squares)})
        settings = [now if each is setting else each for each in fitted.record.settings]
        stored.rewrite(self.folder, fitted.record.model_copy(update={"settings": settings}))


def jobs_of(steps: Steps) -> int:
    """Return how many network and build steps run at a time."""
    return 1 if steps == "inline" else min(MOST_JOBS, Machine().most_threads())


def fit_device(
    folder: Path, asked: DeviceRequest, minutes: float, session: Session, say: Say
) -> DeviceStrategy:
    """Make a predictor for a device within some minutes, from where an earlier call was.

    Raises
    ------
    InputError
        If the device cannot be used, the minutes are too few, or the folder holds something else.
    Unfinished
        If the minutes turn out too few, or too few points could be measured.
    """
    check_number(minutes)
    studies = DeviceStudies.of(asked)
    run = opened(folder, asked)
    budget = LoopBudget(minutes=minutes, before_s=run.spent_s)
    studies.check(asked, budget)
    examine(asked, say)
    for place in DeviceStrategy.places:
        session.check(studies.study(place), folder / place, [])
    strategy = DeviceStrategy(folder, asked, studies, session, budget, say)
    Loop(strategy, session, folder, budget, say).run()
    return strategy


def usable(row: Row) -> bool:
    """Return whether a predictor of kernels can be fitted to a row."""
    return row.timed and bool(operators_of(row)) and any(seconds > 0 for _, seconds in timed_layers(row))
