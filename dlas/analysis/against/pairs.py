"""Rows of the same points in two runs."""

from __future__ import annotations

import statistics
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from dlas.errors import InputError, listed
from dlas.stack.types import Floats
from dlas.sweep.rows.files import Folders, complete_lines, paths_of, results_file
from dlas.sweep.rows.frame import read_each, select
from dlas.sweep.rows.lines import Damaged
from dlas.sweep.rows.machines import differences, machine_id
from dlas.sweep.rows.results import Row, read_rows


@dataclass(frozen=True)
class Pair:
    """The rows of a point before and now; None where a run has none."""

    before: Row | None
    now: Row | None

    @property
    def row(self) -> Row:
        """The row of now, or that of before."""
        row = self.now or self.before
        assert row is not None
        return row

    @property
    def timed(self) -> bool:
        """Whether both have times that are a result."""
        return bool(self.before and self.before.timed and self.now and self.now.timed)

    @property
    def unchanged(self) -> bool:
        """Whether nothing that the result depends on differs, so that its time cannot have changed."""
        return bool(self.before and self.now and self.before.key and self.before.key == self.now.key)

    @property
    def one_machine(self) -> bool:
        """Whether no other machine is known of one row than of the other."""
        machines = {machine_id(row.device) for row in (self.before, self.now) if row and row.device}
        return len(machines) < 2


def pairs_of(now: Folders, before: Folders, ids: Collection[str] | None = None) -> list[Pair]:
    """Return the pairs of two runs, in the order of the first.

    Parameters
    ----------
    now, before : path or paths
        Folders that ``dlas run`` wrote.  Where both are the same, the row of a point before is its last one
        with another key than its current row.
    ids : collection of str, optional
        The points; by default all.

    Raises
    ------
    InputError
        If a folder holds no rows, or no point is in both, as in folders of different studies.
    """
    new, old = paths_of(now), paths_of(before)
    later = _rows(new, ids)
    earlier = _superseded(new, later) if new == old else _rows(old, ids)
    if not later.keys() & earlier.keys():
        raise InputError(_nothing_in_common(new, old, later, earlier))
    known = {**later, **earlier} if new != old else later
    return [
        Pair(earlier.get(row_id), later.get(row_id)) for row_id in known if new != old or row_id in earlier
    ]


def ids_of(folders: Iterable[Path], where: Sequence[str]) -> set[str] | None:
    """Return the ids of points whose row in any folder matches all filters; None, for all, without filters.

    Raises
    ------
    InputError
        If a filter is malformed or keeps no row.
    """
    return set(select(read_each(list(dict.fromkeys(folders))), where)["id"]) if where else None


def log_medians(row: Row) -> Floats:
    """Return the logarithms of the medians of a row's slices, [slices].

    Slices are what a measurement takes at a time, between those of other points: times within one are more
    alike than times of two.
    """
    # Of so few samples each, NumPy's median takes twenty times as long.
    return np.log([statistics.median(piece.tolist()) for piece in _slices(row)])


def log_shortest(row: Row, count: int) -> Floats:
    """Return the logarithms of a row's shortest samples, ascending, ``count`` or as many as there are."""
    return np.log(sorted(row.latency_s)[:count])


def _slices(row: Row) -> list[Floats]:
    """Return the samples of each slice; rows from before sizes were kept are cut into slices of one size."""
    samples = np.asarray(row.latency_s, dtype=float)
    if row.slice_samples and sum(row.slice_samples) == len(samples):
        pieces = np.split(samples, np.cumsum(row.slice_samples)[:-1])
    else:
        pieces = np.array_split(samples, max(1, min(int(row.measure.get("slices") or 1), len(samples))))
    return [piece for piece in pieces if len(piece)]


def sentinel_ratio(pair: Pair, shortest: bool = False) -> float | None:
    """Return by how much the fixed program became slower, as a logarithm; None where it was not measured.

    Parameters
    ----------
    shortest : bool, optional
        Of its shortest run, in place of the mean of all.
    """
    before, now = (row.sentinel_s if row else [] for row in (pair.before, pair.now))
    if not before or not now:
        return None
    old, new = (np.log(times).min() if shortest else np.log(times).mean() for times in (before, now))
    return float(new - old)


def causes(pair: Pair) -> tuple[str, ...]:
    """Return what differs between two rows of a point and may explain a change, the likeliest first."""
    before, now = pair.before, pair.now
    if before is None or now is None:
        return ()
    found = []
    if not pair.one_machine:
        told = ", ".join(differences(before.device, now.device))
        found.append(f"machine: {told or 'another'}")
    elif pair.unchanged:
        return ()
    versions = different(before.environment.get("versions"), now.environment.get("versions"))
    found += [f"{name} {_version(old)} to {_version(new)}" for name, old, new in versions]
    if before.addresses != now.addresses and before.addresses and now.addresses:
        found.append(f"addresses {before.addresses} to {now.addresses}")
    found += [f"measure.{name} {old} to {new}" for name, old, new in different(before.measure, now.measure)]
    if not before.sources or not now.sources:
        return (*found, "source unknown")
    sources = [f"source of {axis}" for axis, *_ in different(before.sources, now.sources)]
    return tuple([*found, *sources] or ["source of the tool"])


def different(before: Any, now: Any) -> Iterator[tuple[str, Any, Any]]:
    """Yield the names of two mappings whose values differ, with these."""
    before, now = before or {}, now or {}
    for name in dict.fromkeys((*before, *now)):
        if before.get(name) != now.get(name):
            yield name, before.get(name), now.get(name)


def _version(version: object) -> str:
    return "none" if version is None else str(version)


def _rows(folders: Sequence[Path], ids: Collection[str] | None) -> dict[str, Row]:
    """Return the rows of folders by the ids of their points: the later one of each."""
    found: dict[str, Row] = {}
    for folder in folders:
        for row in read_rows(folder, ids):
            if row.id not in found or (row.started or "") >= (found[row.id].started or ""):
                found[row.id] = row
    return found


def _superseded(folders: Sequence[Path], current: dict[str, Row]) -> dict[str, Row]:
    """Return the last rows with another key than the current ones."""
    found = {}
    for folder in folders:
        for line in complete_lines(results_file(folder)):
            try:
                row = Row.parse(line)
            except Damaged:
                continue
            if row.id in current and row.key != current[row.id].key:
                found[row.id] = row
    return found


def _nothing_in_common(
    new: Sequence[Path], old: Sequence[Path], later: dict[str, Row], earlier: dict[str, Row]
) -> str:
    """Return why no point is in both runs."""
    names = [listed(sorted({row.study for row in rows.values()})) for rows in (later, earlier)]
    first, second = (" ".join(map(str, folders)) for folders in (new, old))
    if new == old:
        return f"no point of {first!r} has an earlier row with another key: give an earlier run, `against=`"
    return f"no point is in both {first!r} (rows of {names[0]}) and {second!r} (rows of {names[1]})"
