"""What became of the points that were chosen, by the values that they have."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from dlas.prediction.adaptive.share.space import ABSENT, Codes, Space
from dlas.sweep.rows.labels import points as counted
from dlas.sweep.rows.labels import shortened
from dlas.sweep.rows.results import Row


class PointOutcome(NamedTuple):
    """What became of a point that was chosen."""

    seconds: float | None
    """Its latency; None where it came to nothing."""
    reason: str = ""
    """Why it did; empty where it did not."""
    macs: float | None = None
    """Multiply-adds of its network, where its row tells them."""

    @classmethod
    def of(cls, row: Row) -> PointOutcome:
        """Return what became of the point of a row."""
        if row.timed:
            return cls(statistics.median(row.latency_s), macs=row.macs)
        return cls(None, f"{row.status}: {row.reason}", row.macs)


@dataclass(frozen=True)
class Tally:
    """What became of the chosen points with each value of a factor."""

    name: str
    """The factor's."""
    values: tuple[str, ...]
    codes: Codes
    """[n] of int."""
    timed: Codes
    vain: Codes
    """Points with a time, and those that came to nothing; [values] of int."""
    reasons: dict[int, str]
    """By value, why the first of these did."""

    def told(self, place: int) -> str:
        """Return a point's value with the factor's name, which says where an option belongs."""
        return f"{self.name} {self.values[self.codes[place]]}"


def tallies(space: Space, known: Mapping[int, PointOutcome]) -> list[Tally]:
    """Return the tallies of all factors."""
    found = []
    for factor in space.choices:
        timed, vain = np.zeros((2, len(factor.values)), dtype=np.intp)
        reasons: dict[int, str] = {}
        for place, each in known.items():
            code = int(factor.codes[place])
            if code == ABSENT:
                continue
            if each.seconds:
                timed[code] += 1
            else:
                vain[code] += 1
                reasons.setdefault(code, shortened(each.reason))
        found.append(Tally(factor.name, factor.values, factor.codes, timed, vain, reasons))
    return found


def unknown(counts: Sequence[Tally], place: int) -> str:
    """Return why a point cannot be predicted: nothing with one of its values has a time."""
    for tally in counts:
        code = int(tally.codes[place])
        if code != ABSENT and not tally.timed[code]:
            reason = tally.reasons.get(code)
            return f"no point with {tally.told(place)} has a time" + (f": {reason}" if reason else "")
    return ""


def doubt(counts: Sequence[Tally], place: int) -> str:
    """Return which values of a point came to nothing as often as not."""
    doubts = []
    for tally in counts:
        code = int(tally.codes[place])
        if code != ABSENT and tally.vain[code] >= max(1, tally.timed[code]):
            tried = counted(int(tally.vain[code] + tally.timed[code]))
            doubts.append(f"{tally.vain[code]} of {tried} with {tally.told(place)} have no time")
    return "; ".join(doubts)
