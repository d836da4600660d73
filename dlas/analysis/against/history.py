"""How the times of points went over versions, and at which of these their level changed."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from dlas.analysis.against.changes import FALSE_DISCOVERIES, FASTER, SAME, SLOWER, point_of
from dlas.analysis.against.noise import (
    LEAST_FREEDOM,
    MEDIANS,
    NORMAL,
    PRIOR,
    SENTINELS,
    USUAL,
    RunNoise,
    noise_of,
    value,
    within_rows,
)
from dlas.analysis.against.pairs import Pair, causes, ids_of, sentinel_ratio
from dlas.analysis.against.segments import FEWEST, Segment, segments_of
from dlas.analysis.against.tails import Tails
from dlas.analysis.against.versions import Version, VersionLine, every_row, lines_of, studies_of
from dlas.errors import InputError, listed
from dlas.stack.types import Floats
from dlas.sweep.rows import intervals
from dlas.sweep.rows.files import Folders, paths_of
from dlas.sweep.rows.frame import distinct
from dlas.sweep.rows.results import Row

OUTLYING, UNCONFIRMED = ("outlying", "unconfirmed")
EVENTS = (SLOWER, FASTER, UNCONFIRMED, OUTLYING, SAME)
"""What a version may be to its line; those that a reader looks for come first.  ``outlying`` is one version
that differs from those around it, ``unconfirmed`` the last version where it differs from those before.
"""
Place = tuple[str, Version]
"""A machine and a version."""
Step = tuple[str, Version, Version]
"""A machine and two versions, one of which follows on the other in some line."""


@dataclass(frozen=True)
class Event:
    """What happened to a point's time at a version."""

    at: int
    """The version's place in its line."""
    kind: str
    """One of :data:`EVENTS`."""
    ratio: tuple[float, float, float]
    """The level from here over that before, or the version's time over its level, with its interval of 95 %.
    The shifts of the machine are taken out.
    """
    causes: tuple[str, ...] = ()
    """What differs between the row of this version and the one before it."""


@dataclass(frozen=True)
class PointHistory:
    """A point's times on one machine over versions."""

    line: VersionLine
    values: Floats
    """Logarithms of the times, as on the machine of the first version, [versions]."""
    errors: Floats
    """Standard errors of these, between runs as well, [versions]."""
    tails: Tails
    """How far the errors reach."""
    segments: list[Segment]
    """Versions of one level."""

    @property
    def events(self) -> list[Event]:
        """What happened, from the first version to the last."""
        changed = [self._change(*pair) for pair in itertools.pairwise(self.segments)]
        alone = [self._alone(segment, at) for segment in self.segments for at in segment.outlying]
        return sorted([*changed, *alone], key=lambda event: event.at)

    @property
    def rank(self) -> tuple[int, float]:
        """What orders histories: those in which most happened first."""
        kinds = [(EVENTS.index(event.kind) // 2, -abs(np.log(event.ratio[0]))) for event in self.events]
        return min(kinds, default=(len(EVENTS), 0.0))

    def level(self, at: int) -> float:
        """Return the time of the level that a version belongs to, in seconds."""
        return float(np.exp(next(each.level for each in self.segments if at < each.stop)))

    def _change(self, before: Segment, after: Segment) -> Event:
        ratio = self._interval(after.level - before.level, float(np.hypot(before.error, after.error)))
        return Event(
            after.start, SLOWER if ratio[0] > 1 else FASTER, ratio, self._causes(after.start, after.start - 1)
        )

    def _alone(self, segment: Segment, at: int) -> Event:
        error = float(np.hypot(self.errors[at], segment.error))
        kind = UNCONFIRMED if at == len(self.values) - 1 else OUTLYING
        return Event(
            at, kind, self._interval(self.values[at] - segment.level, error), self._causes(at, at - 1)
        )

    def _interval(self, middle: float, error: float) -> tuple[float, float, float]:
        half = self.tails.distance(0.05) * error
        low, high = np.exp([middle - half, middle + half]).tolist()
        return float(np.exp(middle)), low, high

    def _causes(self, at: int, before: int) -> tuple[str, ...]:
        rows = self.line.rows
        return causes(Pair(rows[before].row, rows[at].row)) if before >= 0 else ()


@dataclass(frozen=True)
class VersionHistory:
    """Points over versions."""

    points: list[PointHistory]
    """Those in which most happened first: points with two versions on a machine, on each machine."""
    names: Mapping[Version, tuple[int, str]]
    """The number of each version by when it began, from 1, and its folder."""
    steps: Mapping[Step, RunNoise]
    """What each machine did between two versions, and by how much runs of an unchanged point differ."""
    untimed: int
    """Rows that have no time and are in no line."""
    detectable: float
    """The smallest lasting slowdown, as a share, that is found with 95 % power in the middle of the longest
    lines, in half of them; NaN where no line is long enough.
    """

    def frame(self) -> pd.DataFrame:
        """Return one line for each point, machine and version."""
        return pd.DataFrame([line for each in self.points for line in self._lines(each)])

    def _lines(self, history: PointHistory) -> Iterable[dict[str, object]]:
        half = history.tails.distance(0.05) * history.errors
        bounds = np.exp(np.stack([history.values, history.values - half, history.values + half], axis=1))
        events = {event.at: event for event in history.events}
        for at, (each, own) in enumerate(zip(history.line.rows, bounds.tolist(), strict=True)):
            number, folder = self.names[each.version]
            event = events.get(at, Event(at, SAME, (np.nan, np.nan, np.nan)))
            yield {
                **point_of(each.row),
                "machine": history.line.machine,
                "version": number,
                "folder": folder,
                "started": each.row.started,
                "key": each.row.key,
                "latency_s": intervals.median(each.row.latency_s)[0],
                **dict(zip(("adjusted_s", "adjusted_low_s", "adjusted_high_s"), own, strict=True)),
                "level_s": history.level(at),
                "event": event.kind,
                **dict(zip(("ratio", "ratio_low", "ratio_high"), event.ratio, strict=True)),
                "causes": "; ".join(event.causes),
            }


def history_in(folders: Folders, where: Sequence[str] = ()) -> VersionHistory:
    """Return how points went over the versions in folders.

    Parameters
    ----------
    folders : path or paths
        Each is a version; rows of a point with other keys in one folder are several.
    where : sequence of str
        Filters that a point's row in any folder matches.

    Raises
    ------
    InputError
        If a folder holds no rows, a filter is malformed or keeps no row, or no point has a time in two
        versions on one machine.
    """
    paths = distinct(paths_of(folders))
    ids = ids_of(paths, where)
    found = history_of([list(every_row(path, ids)) for path in paths], [*map(str, paths)])
    if found is None:
        raise InputError(
            f"no point has times in two versions on one machine in {' '.join(map(str, paths))} "
            f"(rows of {listed(studies_of(paths))}), and another machine has other times: give folders of "
            "several runs"
        )
    return found


def history_of(versions: Sequence[Sequence[Row]], folders: Sequence[str]) -> VersionHistory | None:
    """Return how points went over versions; None where none has a time in two of them on one machine.

    Parameters
    ----------
    versions : sequence of sequence of Row
        All rows of each folder.
    folders : sequence of str
        What the folders are called.
    """
    lines, untimed = lines_of(versions)
    steps = _steps(lines)
    if not steps:
        return None
    by_time = enumerate(_by_time(lines), 1)
    names = {version: (number, folders[version.folder]) for number, version in by_time}
    several = {line.row.id for line in lines if len(line.rows) > 1}
    points, detectable = _judged([line for line in lines if line.row.id in several], steps)
    points.sort(key=lambda each: each.rank)
    return VersionHistory(points, names, steps, untimed, detectable)


def _by_time(lines: Sequence[VersionLine]) -> list[Version]:
    """Return all versions by when their first row was measured."""
    first: dict[Version, str] = {}
    for line in lines:
        for each in line.rows:
            started = each.row.started or ""
            first[each.version] = min(first.get(each.version, started), started)
    return sorted(first, key=lambda version: (first[version], version))


def _steps(lines: Sequence[VersionLine]) -> dict[Step, RunNoise]:
    """Return what each machine did between two versions.

    What tells the points' times is the same in all steps of a machine, for a version is before one and after
    another: the way of most of them.
    """
    pairs: dict[Step, list[Pair]] = {}
    for line in lines:
        for before, now in itertools.pairwise(line.rows):
            step = (line.machine, before.version, now.version)
            pairs.setdefault(step, []).append(Pair(before.row, now.row))
    found = {step: noise_of(every) for step, every in pairs.items()}
    ways: dict[str, Counter[str]] = {}
    for (machine, *_), noise in found.items():
        ways.setdefault(machine, Counter())[noise.by] += 1
    chosen = {machine: _of_most(counts) for machine, counts in ways.items()}
    return {
        step: noise if noise.by == chosen[step[0]] else noise_of(pairs[step], by=chosen[step[0]])
        for step, noise in found.items()
    }


def _of_most(ways: Counter[str]) -> str:
    """Return the way of more than half of the steps, medians where there is none."""
    (way, count), *_ = ways.most_common()
    return way if count > ways.total() / 2 else MEDIANS


def _way(machine: str, steps: Mapping[Step, RunNoise]) -> str:
    """Return what tells times on a machine."""
    return next((noise.by for step, noise in steps.items() if step[0] == machine), MEDIANS)


def _judged(lines: Sequence[VersionLine], steps: Mapping[Step, RunNoise]) -> tuple[list[PointHistory], float]:
    """Return the histories with their changes, and how small a change is found.

    All points and all versions at which their level may change are one family of tests: as many changes are
    called as reach the level at which the share of false ones among so many is controlled.
    """
    variances = _variances(lines, steps)
    made = [_series(line, own, steps) for line, own in zip(lines, variances, strict=True)]
    tests = sum(max(0, len(line.rows) - 2 * FEWEST + 1) for line in lines)
    called, found = 0, []
    while True:
        significance = FALSE_DISCOVERIES * max(1, called) / max(1, tests)
        found = [
            PointHistory(
                line, values, errors, tails, segments_of(values, errors**2, tails.distance(significance) ** 2)
            )
            for line, (values, errors, tails) in zip(lines, made, strict=True)
        ]
        more = sum(len(each.segments) - 1 for each in found)
        if more <= called:
            return found, _detectable(found, significance)
        called = more


def _series(
    line: VersionLine, variances: Floats, steps: Mapping[Step, RunNoise]
) -> tuple[Floats, Floats, Tails]:
    """Return a line's values without the shifts of the machine, their errors and how far these reach."""
    own = [steps[line.machine, before.version, now.version] for before, now in itertools.pairwise(line.rows)]
    beside = [
        _beside(Pair(before.row, now.row), noise)
        for (before, now), noise in zip(itertools.pairwise(line.rows), own, strict=True)
    ]
    shifts = np.concatenate([[0.0], np.cumsum([noise.shift for noise in own]) + np.cumsum(beside)])
    by = _way(line.machine, steps)
    values = np.array([value(parts, by) for parts in line.told(by)]) - shifts
    if not own:
        return values, np.sqrt(variances), Tails(LEAST_FREEDOM)
    # A point whose runs differ by more than those of others counts by what its own differ by.  Half of the
    # steps tell it, so that changes do not.
    apart = np.abs(np.diff(values)) / np.sqrt(variances[:-1] + variances[1:])
    seen = (NORMAL * float(np.median(apart))) ** 2
    scale = max(1.0, (PRIOR + len(apart) * seen) / (PRIOR + len(apart)))
    widest = max((noise.tails for noise in own), key=lambda tails: tails.distance(FALSE_DISCOVERIES))
    return values, np.sqrt(scale * variances), widest


def _beside(pair: Pair, noise: RunNoise) -> float:
    """Return what the machine did to a point beyond what it did to all, if the fixed program tells it."""
    ratio = sentinel_ratio(pair) if noise.by == SENTINELS else None
    return 0.0 if ratio is None or noise.sentinel is None else ratio - noise.sentinel


def _variances(lines: Sequence[VersionLine], steps: Mapping[Step, RunNoise]) -> list[Floats]:
    """Return the variances of each line's values: of slices, pooled over a version, and between runs."""
    between: dict[Place, list[float]] = {}
    unshared: dict[Place, list[float]] = {}
    for (machine, before, now), noise in steps.items():
        for version in (before, now):
            # That of a step is of two runs.
            between.setdefault((machine, version), []).append(noise.between / 2)
            unshared.setdefault((machine, version), []).append(noise.unshared)
    told: dict[Place, list[Floats]] = {}
    places = []
    for line in lines:
        for each, own in zip(line.rows, line.told(_way(line.machine, steps)), strict=True):
            known = told.setdefault((line.machine, each.version), [])
            places.append(((line.machine, each.version), len(known)))
            known.append(own)
    within = {place: within_rows(every, _way(place[0], steps)) for place, every in told.items()}
    every = np.array(
        [
            np.mean(unshared.get(place, [1.0])) * within[place][at] + np.mean(between.get(place, [USUAL**2]))
            for place, at in places
        ]
    )
    ends = np.cumsum([len(line.rows) for line in lines])
    return np.split(every, ends[:-1])


def _detectable(found: Sequence[PointHistory], significance: float, power: float = 0.95) -> float:
    longest = max(len(each.values) for each in found)
    if longest < 2 * FEWEST:
        return float("nan")
    shares = []
    for each in found:
        if len(each.values) == longest:
            sides = 1 / np.array([(half**-2.0).sum() for half in np.array_split(each.errors, 2)])
            reached = each.tails.distance(significance) + each.tails.distance(2 * (1 - power))
            shares.append(np.expm1(reached * np.sqrt(sides.sum())))
    return float(np.median(shares))
