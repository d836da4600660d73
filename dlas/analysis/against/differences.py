"""What differs between two rows of a point."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from dlas.analysis.against.changes import QUANTITIES, Change, changes_of
from dlas.analysis.against.noise import RunNoise
from dlas.analysis.against.pairs import different, pairs_of
from dlas.errors import InputError
from dlas.sweep.rows import intervals
from dlas.sweep.rows.files import Folders, paths_of
from dlas.sweep.rows.finding import find
from dlas.sweep.rows.labels import flat
from dlas.sweep.rows.machines import machine_facts
from dlas.sweep.rows.results import Row

Facts = list[tuple[str, Any, Any]]
"""Names, with what a row has before and now; None where it has none."""


@dataclass(frozen=True)
class RowDifference:
    """Two rows of a point beside each other."""

    change: Change
    """Its time in both, told as in a comparison of all points."""
    noise: RunNoise | None
    """What the machine did between the runs; None where no point was timed in both on one machine."""
    folders: tuple[str, str]
    """Where the rows are: before, now."""

    @property
    def before(self) -> Row:
        """The earlier row."""
        row = self.change.pair.before
        assert row is not None
        return row

    @property
    def now(self) -> Row:
        """The row that was asked for."""
        row = self.change.pair.now
        assert row is not None
        return row

    @property
    def times(self) -> tuple[float | None, float | None]:
        """The medians before and now, in seconds."""
        before, now = (
            intervals.median(row.latency_s)[0] if row.latency_s else None for row in (self.before, self.now)
        )
        return before, now

    @property
    def ratio(self) -> tuple[float, float, float]:
        """The time now over that before with its interval of 95 %, without the shift of the machine.

        Of rows that are not tested, as those of two machines, it is that of their samples; NaN without times.
        """
        if not np.isnan(self.change.ratio[0]) or None in self.times:
            return self.change.ratio
        now, before = (np.asarray(row.latency_s) for row in (self.now, self.before))
        middle, low, high = intervals.ratios([now], [before])[0].tolist()
        return middle, low, high

    @property
    def layers(self) -> list[tuple[str, float]]:
        """Layers by how many seconds longer they take now, those that explain the change first."""
        return [each for each in self.change.layers if each[1]]

    def facts(self) -> dict[str, Facts]:
        """Return what differs, by where rows tell it."""
        before, now = self.before, self.now
        found = {
            "row": list(_fields(before, now, ("study", "status", "step", "reason", "key", "started"))),
            "source of": list(different(before.sources, now.sources)),
            "versions": list(different(before.environment.get("versions"), now.environment.get("versions"))),
            "machine": list(different(machine_facts(before.device), machine_facts(now.device))),
            "device": _others(before.device, now.device, machine_facts(now.device)),
            "measured with": list(different(before.measure, now.measure)),
            "environment": _others(before.environment, now.environment, ("versions",)),
            "artifacts": list(different(before.artifacts, now.artifacts)),
            "quantities": list(_quantities(before, now)),
        }
        return {name: facts for name, facts in found.items() if facts}


def difference_of(folder: Folders, prefix: str, against: Folders) -> RowDifference:
    """Return what differs between two rows of a point.

    Parameters
    ----------
    folder : path
        Where the row is.
    prefix : str
        Its id, or the beginning of it.
    against : path or paths
        Where the earlier one is; in the same folder it is the last one with another key.

    Raises
    ------
    InputError
        If no row or more than one has such an id, or there is no earlier one.
    """
    (path,) = paths_of(folder)
    row_id = find(path, prefix).id
    places = paths_of(against)
    # All points tell what the machine did.
    changes = changes_of(pairs_of(path, places))
    named = ", ".join(map(str, places))
    for change in changes.points:
        if change.pair.row.id == row_id and change.pair.before and change.pair.now:
            return RowDifference(change, changes.noise, (named, str(path)))
    wanted = "an earlier row of it with another key" if places == [path] else "a row of it"
    raise InputError(f"`against={named!r}`: {row_id} is in {str(path)!r}, and {wanted} is not there")


def _fields(before: Row, now: Row, names: Sequence[str]) -> Iterator[tuple[str, Any, Any]]:
    return different(*({name: getattr(row, name) for name in names} for row in (before, now)))


def _others(before: Any, now: Any, told: Any) -> Facts:
    """Return the values of nested mappings that differ, without those that are told elsewhere."""
    mappings = (
        dict(flat({name: value for name, value in each.items() if name not in told}))
        for each in (before, now)
    )
    return list(different(*mappings))


def _quantities(before: Row, now: Row) -> Iterator[tuple[str, Any, Any]]:
    known = {field.name for field in dataclasses.fields(Row)} & QUANTITIES.keys()
    return _fields(before, now, [name for name in QUANTITIES if name in known])
