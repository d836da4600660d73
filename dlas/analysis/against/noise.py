"""How far two runs of an unchanged point are apart, and what the whole machine did between them.

The logarithm of a ratio errs by two parts: slices of one run differ, which more slices average away, and runs
differ, which they do not.  The first is pooled over points, since five slices tell a variance badly; the
second is what points that cannot have changed show beyond the first.  Where they show less, slices differ by
what the machine did to all points at a time, which ratios do not have.

Three ways tell a point's time: the medians of its slices; these less what the fixed program did that ran
beside each, where the machine was slower for some points than for others; and its shortest sample, where the
machine slows most samples, and each by another factor.  That one is taken by which points that cannot have
changed differ least.  Far more of them than of a normal distribution may differ by much: they show how far
the tails of errors reach.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from dlas.analysis.against.pairs import Pair, log_medians, log_shortest, sentinel_ratio
from dlas.analysis.against.tails import Tails, likeliest
from dlas.stack.types import Floats
from dlas.sweep.rows.results import Row

MEDIANS, SENTINELS, SHORTEST = "medians", "sentinels", "shortest"
"""Ways to tell a point's time: by the medians of its slices, by these less what the fixed program did beside
them, by its shortest sample.
"""
NEAREST = 10
"""Samples that tell how sure the shortest one is: the nearer they are, the less it differs between runs of
unchanged points (``experiments/two-runs``).
"""
PARTS = {MEDIANS: (1.0,), SENTINELS: (1.0,), SHORTEST: (0.01, 0.05, 0.12, 0.25, 0.5, 1.0)}
USUAL_PART = {MEDIANS: 1.0, SENTINELS: 1.0, SHORTEST: 0.25}
"""Parts of the variances that slices or samples show which ratios may have, by the way; enough points tell
which, and the usual one is taken where there are few.
"""
FEWEST_CONTROLS = 8
"""Points that cannot have changed, from which on they tell what the machine did."""
USUAL = 0.02
"""Standard deviation between runs, at least, where too few points tell it."""
PRIOR = 4.0
"""Degrees of freedom that the variance of all points' slices has beside a point's own."""
ENOUGH = 30
"""Points, at least, that tell the tails of errors, and by which way they differ least."""
EXPLAINED = 0.8
"""Another way than medians is taken where it leaves at most this share of the spread."""
LEAST_FREEDOM = 3.0
"""Degrees of freedom of variances from slices, at least."""
NORMAL = 1.4826
"""Median absolute deviation of a normal distribution to its standard deviation."""


@dataclass(frozen=True)
class RunNoise:
    """What two runs of points that did not change differ by."""

    ratios: Floats
    """Logarithms of the ratios of now to before, [pairs], the shift of the machine included, but by sentinels
    not what it did beside one point and not beside others.
    """
    within: Floats
    """Variances of these that slices explain and that points do not have in common, [pairs]."""
    between: float
    """Variance of these between runs."""
    shift: float
    """Logarithm of how much slower the machine was: taken out of every ratio."""
    sentinel: float | None
    """The same by the fixed program."""
    controls: int
    """Points that cannot have changed, by which shift and variance between runs are told; 0 where there were
    too few: then the fixed program tells the shift, and all points the variance.
    """
    tails: Tails
    """How far the errors reach."""
    by: str = MEDIANS
    """Which way tells the points' times."""
    unshared: float = 1.0
    """Part of the variances of slices or samples that ratios have, too: what all points share is in none.
    """

    @property
    def errors(self) -> Floats:
        """Standard errors of the ratios, [pairs]."""
        errors: Floats = np.sqrt(self.within + self.between)
        return errors

    def p_values(self) -> Floats:
        """Return how likely a ratio at least so far from the shift is where nothing changed, [pairs]."""
        return self.tails.chances((self.ratios - self.shift) / self.errors)

    def intervals(self, level: float = 0.95) -> Floats:
        """Return each ratio without the shift, and its interval, as factors, [pairs, 3]."""
        middle = self.ratios - self.shift
        half = self.tails.distance(1 - level) * self.errors
        factors: Floats = np.exp(np.stack([middle, middle - half, middle + half], axis=1))
        return factors

    def detectable(self, significance: float, power: float = 0.95) -> Floats:
        """Return the smallest slowdowns that are found with some power, as shares, [pairs]."""
        shares: Floats = np.expm1(self._errors_off(significance, power) * self.errors)
        return shares

    def samples_for(self, share: float, significance: float, power: float = 0.95) -> Floats:
        """Return how many times as many samples find a slowdown with some power, [pairs].

        Infinite where runs differ by more than that: only more runs would tell.
        """
        allowed = (np.log1p(share) / self._errors_off(significance, power)) ** 2 - self.between
        if allowed <= 0:
            return np.full(len(self.within), np.inf)
        times: Floats = self.within / allowed
        return times

    def _errors_off(self, significance: float, power: float) -> float:
        """Return how many standard errors a change is away from none that is found with some power."""
        return self.tails.distance(significance) + self.tails.distance(2 * (1 - power))


def noise_of(pairs: Sequence[Pair], *, by: str | None = None) -> RunNoise:
    """Return the noise of pairs, at least one, that are timed on one machine.

    Parameters
    ----------
    by : str, optional
        Which way tells the points' times; by default that by which they differ least.
    """
    control = np.array([pair.unchanged for pair in pairs], dtype=bool)
    enough = bool(control.sum() >= FEWEST_CONTROLS)
    seen = control if enough else np.ones(len(pairs), dtype=bool)
    controls = int(control.sum()) if enough else 0
    ways = {way.by: way for way in _ways(pairs)}
    spreads = {name: spread_of(way.ratios[seen]) for name, way in ways.items()}
    if by is None:
        by = min(spreads, key=lambda name: spreads[name])
        if seen.sum() < ENOUGH or spreads[by] >= EXPLAINED * spreads[MEDIANS]:
            by = MEDIANS
    way = ways.get(by, ways[MEDIANS])
    spread, sentinel = spreads[way.by], way.sentinel
    shift = float(np.median(way.ratios[control])) if enough else sentinel or 0.0
    freedom = max(LEAST_FREEDOM, min(way.freedom + PRIOR, float(seen.sum()) - 1))
    if controls >= ENOUGH:
        apart = way.ratios[control] - shift
        tried = [_split(spread, part * way.within[control], part) for part in PARTS[way.by]]
        between, unshared, tails = _likeliest(apart, way.within[control], tried, freedom)
    else:
        part = USUAL_PART[way.by]
        between, unshared = _split(spread, part * way.within[seen], part, sure=bool(seen.sum() >= ENOUGH))
        between = max(between, USUAL**2) if seen.sum() < FEWEST_CONTROLS else between
        tails = Tails(freedom)
    within = unshared * way.within
    return RunNoise(way.ratios, within, between, shift, sentinel, controls, tails, way.by, unshared)


def _split(spread: float, within: Floats, part: float, *, sure: bool = True) -> tuple[float, float]:
    """Return the variance between runs, and which part of what slices show ratios have.

    Parameters
    ----------
    within : array [points]
        Variances that slices show, of which ratios are to have a part.
    sure : bool, optional
        Whether points are so many that a smaller spread says that ratios have less.
    """
    explained = float(np.median(within))
    if sure and 0 < spread**2 < explained:
        return 0.0, part * spread**2 / explained
    return max(0.0, spread**2 - explained), part


def _likeliest(
    ratios: Floats, within: Floats, tried: Sequence[tuple[float, float]], freedom: float
) -> tuple[float, float, Tails]:
    """Return the variance between runs, the part of slices' and the tails that make ratios likeliest."""
    best, found = -np.inf, (0.0, 1.0, Tails(freedom))
    for between, unshared in tried:
        deviations = np.sqrt(np.maximum(unshared * within + between, np.finfo(float).tiny))
        tails, scale, worth = likeliest(ratios / deviations, freedom)
        if (worth := worth - float(np.log(deviations).sum())) > best:
            best, found = worth, (scale**2 * between, scale**2 * unshared, tails)
    return found


def told(row: Row, by: str) -> Floats:
    """Return what tells a row's time: logarithms of medians of its slices, or of its shortest samples."""
    return log_shortest(row, NEAREST) if by == SHORTEST else log_medians(row)


def value(parts: Floats, by: str) -> float:
    """Return the logarithm of a row's time from what :func:`told` returned."""
    return float(parts[0] if by == SHORTEST else parts.mean())


def within_rows(parts: Sequence[Floats], by: str) -> Floats:
    """Return the variances of rows' times as slices or samples tell them, [rows].

    Medians vary as the mean of slices does, shortest samples by how far the tenth is from the first.
    """
    if by != SHORTEST:
        return pooled(parts)
    found: Floats = np.array([(own[-1] - own[0]) ** 2 for own in parts])
    return found


@dataclass(frozen=True)
class _Way:
    """Ratios told in one way."""

    by: str
    ratios: Floats
    """Logarithms, [pairs]."""
    within: Floats
    """Variances of these that slices show, [pairs]."""
    sentinel: float | None
    """Logarithm of how much slower the fixed program was in the middle."""
    freedom: float
    """Degrees of freedom of a pair's own variance."""


def _ways(pairs: Sequence[Pair]) -> Iterator[_Way]:
    """Yield all ways, that by sentinels where some were measured."""
    for by in (MEDIANS, SHORTEST):
        before, now = (
            [told(row, by) for pair in pairs if (row := getattr(pair, name))] for name in ("before", "now")
        )
        ratios = np.array([value(new, by) - value(old, by) for new, old in zip(now, before, strict=True)])
        beside = np.array(
            [np.nan if (one := sentinel_ratio(pair, by == SHORTEST)) is None else one for pair in pairs]
        )
        sentinel = None if np.isnan(beside).all() else float(np.nanmedian(beside))
        freedom = float(np.median([len(new) + len(old) - 2 for new, old in zip(now, before, strict=True)]))
        within = within_rows(now, by) + within_rows(before, by)
        yield _Way(by, ratios, within, sentinel, freedom)
        if by == MEDIANS and sentinel is not None:
            yield _Way(SENTINELS, ratios - np.nan_to_num(beside - sentinel), within, sentinel, freedom)


def spread_of(ratios: Floats) -> float:
    """Return the standard deviation of ratios of which a few may be of points that changed."""
    return NORMAL * float(np.median(np.abs(ratios - np.median(ratios))))


def pooled(slices: Sequence[Floats]) -> Floats:
    """Return the variance of each row's mean of slices, drawn towards that of all rows, [rows]."""
    counts = np.array([len(each) for each in slices], dtype=float)
    own = np.array([each.var(ddof=1) if len(each) > 1 else 0.0 for each in slices])
    known = own[counts > 1]
    usual = float(np.median(known)) if len(known) else 0.0
    freedom = np.maximum(counts - 1, 0)
    pooled: Floats = (PRIOR * usual + freedom * own) / (PRIOR + freedom) / counts
    return pooled
