"""The versions in which a point was timed: its rows over folders and keys, one line for each machine."""

from __future__ import annotations

import dataclasses
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from dlas.analysis.against.noise import told
from dlas.stack.types import Floats
from dlas.sweep.rows.files import complete_lines, results_file
from dlas.sweep.rows.lines import Damaged
from dlas.sweep.rows.machines import machine_id, machine_names
from dlas.sweep.rows.results import Row, read_rows

UNKNOWN = "unknown machine"
PointOnMachine = tuple[str, str | None]
"""The id of a point and the fingerprint of a machine."""


@dataclass(frozen=True, order=True)
class Version:
    """A run of a study: a folder, and in it the rows of an earlier or of a later key."""

    folder: int
    """Its place among the folders."""
    generation: int
    """How many other keys a point's rows in the folder had before, on the same machine."""


@dataclass(frozen=True)
class VersionRow:
    """A row of a point in one version, without its layers."""

    version: Version
    row: Row


@dataclass(frozen=True)
class VersionLine:
    """The rows of a point on one machine, by when they were measured."""

    machine: str
    """What the machine is called."""
    rows: list[VersionRow]
    _told: dict[str, list[Floats]] = dataclasses.field(default_factory=dict, repr=False, compare=False)

    @property
    def row(self) -> Row:
        """The last row."""
        return self.rows[-1].row

    def told(self, by: str) -> list[Floats]:
        """Return what tells each row's time, in one of the ways of :mod:`dlas.analysis.against.noise`."""
        if by not in self._told:
            self._told[by] = [told(each.row, by) for each in self.rows]
        return self._told[by]


def lines_of(versions: Iterable[Iterable[Row]]) -> tuple[list[VersionLine], int]:
    """Return a line for each point and machine, and how many rows have no time and are in none.

    Of the rows of a point in one folder, the last of each key and machine counts.  A row that is in several
    folders, as after they were joined, counts once.

    Parameters
    ----------
    versions : iterable of iterable of Row
        All rows of each folder.
    """
    found: dict[PointOnMachine, list[VersionRow]] = {}
    untimed = 0
    for number, rows in enumerate(versions):
        own: dict[PointOnMachine, dict[str, Row]] = {}
        for row in rows:
            if row.timed:
                keys = own.setdefault((row.id, machine_id(row.device)), {})
                keys.pop(row.key, None)  # the later one of a key comes behind those of other keys
                keys[row.key] = dataclasses.replace(row, layers=[], edges=[])
            else:
                untimed += 1
        for place, keys in own.items():
            known = found.setdefault(place, [])
            known += [
                VersionRow(Version(number, generation), row)
                for generation, row in enumerate(keys.values())
                if not any(_copies(row, each.row) for each in known)
            ]
    names = machine_names(each[0].row.device for each in found.values())
    return [
        VersionLine(
            names.get(machine or "", UNKNOWN),
            sorted(rows, key=lambda each: (each.row.started or "", each.version)),
        )
        for (_, machine), rows in found.items()
    ], untimed


def every_row(folder: Path, ids: Collection[str] | None = None) -> Iterator[Row]:
    """Yield all rows of a folder that are readable, those too that later ones have replaced.

    Raises
    ------
    InputError
        If the folder holds no rows.
    """
    wanted = None if ids is None else [each.encode() for each in ids]
    for line in complete_lines(results_file(folder)):
        # An id is a hash: looking for it is faster than reading the line.
        if wanted is not None and not any(each in line for each in wanted):
            continue
        try:
            row = Row.parse(line)
        except Damaged:
            continue
        if ids is None or row.id in ids:
            yield row


def studies_of(folders: Sequence[Path]) -> list[str]:
    """Return the names of the studies of folders' rows."""
    return sorted({row.study for folder in folders for row in read_rows(folder)})


def _copies(one: Row, other: Row) -> bool:
    return (one.key, one.started, one.latency_s) == (other.key, other.started, other.latency_s)
