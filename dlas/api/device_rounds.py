"""The rounds of points that a predictor for a device is fitted to: each has those that teach it most."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import cast

import numpy as np

from dlas.api.device_bench import Bench
from dlas.api.planned import Planned
from dlas.console import device as lines
from dlas.errors import InputError, Unfinished
from dlas.learning.committee import Committee, choose, seconds_to_measure
from dlas.learning.device_runs import AGAIN, ROWS, Asked
from dlas.learning.noise import noise_floor
from dlas.learning.points import Points, planned_points, read_points
from dlas.learning.spending import (
    CANDIDATES,
    FIRST,
    PROBED,
    Clock,
    check_pace,
    end_s,
    points_of_round,
    stop_reason,
)
from dlas.networks.operators import Operators
from dlas.predictors.additive import Additive
from dlas.predictors.boosted_kernels import BoostedKernels
from dlas.rows.files import holds_rows
from dlas.rows.results import Row, read_rows
from dlas.stack import Layer
from dlas.study.point import Point

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
    """Measures points for a predictor until its minutes are used, or more points gain nothing.

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
            if reason:
                return
            self._measure_round(committee, known, count)

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
            reason = next((row.reason for row in self.tried().values() if row.reason), "nobody knows why")
            raise Unfinished(f"nothing to fit a predictor to: {error}: {reason}") from None

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
                self.points()
            count = PROBED - len(tried) if len(tried) < PROBED else FIRST - (known or len(tried))
            left = [point for point in self.bench.draws(len(tried) + count) if point.id not in tried]
            self.say(lines.as_drawn(len(left)))
            self.bench.measure(left, ROWS)

    def _rows(self, place: str) -> dict[str, Row]:
        """Return the rows in one of the folders, by id."""
        folder = self.folder / place
        return {row.id: row for row in read_rows(folder)} if holds_rows(folder) else {}

    def _committee(self, known: Points) -> Committee:
        """Return the committee, and note how long its fits took."""
        began_s = self.clock.spent_s
        committee = Committee.of(MEMBER, [Additive()], known, self.asked.target, self.asked.seed)
        self._fit_s = LAST_FITS * (self.clock.spent_s - began_s)
        return committee

    def _steps_s(self) -> float:
        """Return how long the steps of a point took, on average."""
        took = [cast(Mapping[str, float], row.seconds) for row in self.tried().values() if usable(row)]
        return float(np.mean([sum(seconds.values()) for seconds in took]))

    def _measure_round(self, committee: Committee, known: Points, count: int) -> None:
        """Measure the candidates that the committee disagrees most on, and one point again."""
        drawn, candidates = self._candidates(CANDIDATES * count)
        disagreement = committee.disagreement(candidates)
        steps = known.frame[[name for name in STEPS if name in known.frame]]
        seconds = seconds_to_measure(known, steps.sum(axis=1).to_numpy(dtype=np.float64), candidates)
        chosen = choose(disagreement, seconds, count)
        others = np.setdiff1d(np.arange(len(candidates)), chosen)
        self.say(lines.chosen(disagreement[chosen], disagreement[others], seconds[chosen]))
        self.bench.measure([drawn[candidates.frame["id"].iloc[place]] for place in chosen], ROWS)
        self.measure_again()

    def _candidates(self, count: int) -> tuple[dict[str, Point], Points]:
        """Return points without a row, and what is known of them: those of earlier rounds, and new ones."""
        tried = self.tried()
        gone = len({*tried, *(name for name, told in self._told.items() if told is None)})
        drawn = {point.id: point for point in self.bench.draws(gone + count) if point.id not in tried}
        if new := [point for name, point in drawn.items() if name not in self._told]:
            self._told |= told_of(self.bench.plan(new), new)
        rows, networks, kernels = zip(*filter(None, map(self._told.get, drawn)), strict=True)
        return drawn, planned_points(rows, networks, kernels)


def usable(row: Row) -> bool:
    """Return whether a predictor of kernels can be fitted to a row."""
    return row.timed and any(layer.get("latency_s") for layer in row.layers)


def told_of(made: Planned, points: Sequence[Point]) -> dict[str, Told | None]:
    """Return what is known of each point, by its id; None for those that could not be planned."""
    found: dict[str, Told | None] = {point.id: None for point in points}
    for row, network, kernels in zip(made.rows, made.networks, made.kernels, strict=True):
        found[row.id] = row, network, kernels
    return found
