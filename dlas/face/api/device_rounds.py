"""The rounds of points that a predictor for a device is fitted to: each has those that teach it most."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import cast

import numpy as np

from dlas.errors import InputError, Unfinished
from dlas.face.api.device_bench import Bench
from dlas.face.console import device as lines
from dlas.networks.operators import Operators
from dlas.prediction.learning.committee import Committee, choose, seconds_to_measure
from dlas.prediction.learning.device_runs import AGAIN, ROWS, Asked
from dlas.prediction.learning.noise import noise_floor
from dlas.prediction.learning.points import Points, operators_of, planned_points, read_points
from dlas.prediction.learning.spending import (
    CANDIDATES,
    FIRST,
    PROBED,
    Clock,
    check_pace,
    end_s,
    points_of_round,
    stop_reason,
)
from dlas.prediction.predictors.additive import Additive
from dlas.prediction.predictors.boosted_kernels import BoostedKernels
from dlas.stack import Layer
from dlas.sweep.engine.planned import Planned
from dlas.sweep.rows.files import holds_rows
from dlas.sweep.rows.labels import points as counted
from dlas.sweep.rows.layer_times import timed_layers
from dlas.sweep.rows.results import Row, read_rows
from dlas.sweep.study.point import Point

Say = Callable[[str], None]
Told = tuple[Row, Operators, list[Layer]]
"""What is known of a point that was not measured: its parts, its network's operators, its kernels."""
MEMBER = BoostedKernels(rounds=100)
"""The predictor of a committee: with fewer trees than the last one, which has a tenth of the fits."""
LAST_FITS = 8.0
"""The last fit and its evaluation take so many times as long as a committee."""
STEPS = ("build_s", "memory_s", "check_s", "measure_s")
"""Columns of the seconds that measuring a candidate takes: its network is there already."""


@dataclass
class Rounds:
    """Measures points for a predictor until its minutes are used, more gain nothing, or there are none.

    Rows that are there already count, so that an interrupted run goes on.

    Parameters
    ----------
    folder : Path
        Of the predictor.
    asked : Asked
    bench : Bench
    clock : Clock
    say : callable
        Takes a line for each round.
    """

    folder: Path
    asked: Asked
    bench: Bench
    clock: Clock
    say: Say
    _told: dict[str, Told | None] = field(default_factory=dict)
    _unplanned: Counter[str] = field(default_factory=Counter)
    _fit_s: float = 0.0

    def run(self) -> None:
        """Measure.

        Raises
        ------
        Unfinished
            If the minutes turn out too few, or nothing can be measured.
        """
        self._measure_first()
        errors: list[float] = []
        began_s, before = self.clock.spent_s, len(self.tried())
        while True:
            read = self.points()
            known = read.merged(self.asked.target)
            committee = self._committee(known)
            # Those that were chosen are the hard ones: on the first, which were not, errors can be compared.
            errors.append(float(committee.errors[:FIRST].mean()))
            added = len(self.tried()) - before
            point_s = (self.clock.spent_s - began_s) / added if added else self._steps_s()
            left_s = self.clock.left_s - end_s(point_s, len(self.asked.unseen), self._fit_s)
            count = points_of_round(len(known), int(left_s / point_s) - 1)  # one of them is measured again
            floor, pairs = noise_floor(read.frame, self.asked.target), len(read) - len(known)
            reason = stop_reason(errors, floor, pairs) or ("" if count else "the minutes are used")
            self.say(
                lines.standing(len(errors), read, len(known), errors[-1], floor, self.clock.left_s, reason)
            )
            if reason or not self._measure_round(committee, known, count):
                return

    def points(self) -> Points:
        """Return all measurements that a predictor can be fitted to.

        Raises
        ------
        Unfinished
            If there are none.
        """
        folders = [path for name in (ROWS, AGAIN) if holds_rows(path := self.folder / name)]
        try:
            return read_points(folders, self.asked.target, kernels=True)
        except InputError as error:
            raise Unfinished(f"nothing to fit a predictor to: {error}: {self._why()}") from None

    def tried(self) -> dict[str, Row]:
        """Return the rows of all points that were to be fitted to, whatever became of them, by id."""
        return self._rows(ROWS)

    def measure_again(self) -> None:
        """Measure one of the points a second time, which tells the noise floor."""
        done = self._rows(AGAIN)
        left = [row for row in self.tried().values() if usable(row) and row.id not in done]
        if left:
            row = left[int(np.random.default_rng((self.asked.seed, len(done))).integers(len(left)))]
            self.bench.measure([Point.of(asdict(row))], AGAIN)

    def _measure_first(self) -> None:
        """Measure points as they are drawn, until there are enough to fit a predictor to."""
        while True:
            tried = self.tried()
            known = sum(map(usable, tried.values()))
            if known >= FIRST:
                return
            if known:
                check_pace(self.clock, known, self._steps_s(), len(self.asked.unseen))
            elif len(tried) >= FIRST:
                self.points()  # which says why none of them can be used
            count = PROBED - len(tried) if len(tried) < PROBED else FIRST - (known or len(tried))
            left = [point for point in self.bench.draws(len(tried) + count) if point.id not in tried]
            if not left:
                raise Unfinished(
                    f"{counted(known)} of {len(tried)} can be used, no others can be drawn, and a predictor "
                    f"is fitted to {FIRST} or more: {self._why()}"
                )
            self.say(lines.as_drawn(len(left)))
            self.bench.measure(left, ROWS)

    def _why(self) -> str:
        """Return the first reason of a point that cannot be used."""
        reasons = (row.reason or row.unstable_reason for row in self.tried().values() if not usable(row))
        return next(filter(None, reasons), "nobody knows why")

    def _rows(self, place: str) -> dict[str, Row]:
        """Return the rows in one of the folders, by id."""
        folder = self.folder / place
        return {row.id: row for row in read_rows(folder)} if holds_rows(folder) else {}

    def _committee(self, known: Points) -> Committee:
        """Return the committee, and note how long its fits took.

        Raises
        ------
        Unfinished
            If the points are too few, or too much alike.
        """
        began_s = self.clock.spent_s
        try:
            committee = Committee.of(MEMBER, [Additive()], known, self.asked.target, self.asked.seed)
        except InputError as error:
            raise Unfinished(f"no predictor can be fitted: {error}") from None
        self._fit_s = LAST_FITS * (self.clock.spent_s - began_s)
        return committee

    def _steps_s(self) -> float:
        """Return how long the steps of a point took, on average."""
        took = [cast(Mapping[str, float], row.seconds) for row in self.tried().values() if usable(row)]
        return float(np.mean([sum(seconds.values()) for seconds in took]))

    def _measure_round(self, committee: Committee, known: Points, count: int) -> bool:
        """Measure the candidates that the committee disagrees most on, and one point again.

        Returns whether there was any.
        """
        drawn, candidates = self._candidates(CANDIDATES * count)
        if candidates is None:
            self.say(lines.none_left(len(drawn), self._unplanned))
            return False
        disagreement = committee.disagreement(candidates)
        steps = known.frame[[name for name in STEPS if name in known.frame]]
        seconds = seconds_to_measure(known, steps.sum(axis=1).to_numpy(dtype=np.float64), candidates)
        chosen = choose(disagreement, seconds, count)
        others = np.setdiff1d(np.arange(len(candidates)), chosen)
        self.say(lines.chosen(disagreement[chosen], disagreement[others], seconds[chosen]))
        self.bench.measure([drawn[candidates.frame["id"].iloc[place]] for place in chosen], ROWS)
        self.measure_again()
        return True

    def _candidates(self, count: int) -> tuple[dict[str, Point], Points | None]:
        """Return points without a row, and what is known of them: those of earlier rounds, and new ones.

        None where nothing is known of any, because none is left or none can be planned.
        """
        tried = self.tried()
        gone = len({*tried, *(name for name, told in self._told.items() if told is None)})
        drawn = {point.id: point for point in self.bench.draws(gone + count) if point.id not in tried}
        if new := [point for name, point in drawn.items() if name not in self._told]:
            made = self.bench.plan(new, ROWS)
            self._told |= told_of(made, new)
            self._unplanned += made.failed
        known = [told for told in map(self._told.get, drawn) if told is not None]
        if not known:
            return drawn, None
        rows, networks, kernels = zip(*known, strict=True)
        return drawn, planned_points(rows, networks, kernels)


def usable(row: Row) -> bool:
    """Return whether a predictor of kernels can be fitted to a row."""
    return row.timed and bool(operators_of(row)) and any(seconds > 0 for _, seconds in timed_layers(row))


def told_of(made: Planned, points: Sequence[Point]) -> dict[str, Told | None]:
    """Return what is known of each point, by its id; None for those that could not be planned."""
    found: dict[str, Told | None] = {point.id: None for point in points}
    for row, network, kernels in zip(made.rows, made.networks, made.kernels, strict=True):
        found[row.id] = row, network, kernels
    return found
