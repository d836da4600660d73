"""Tuning records of several machines in one store: export to one file, merge from several."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from dlas.errors import InputError
from dlas.tuning.records import RecordFile, Records, Round, Store, read_sections, write_lines


@dataclass
class Merged:
    """What a merge did.

    Parameters
    ----------
    workloads : int
        Seen in the files.
    new : int
        Of those, not known before.
    trials : int
        Added.
    apart : int
        Workloads whose searches went different ways: theirs counts up to where they part.
    """

    workloads: int = 0
    new: int = 0
    trials: int = 0
    apart: int = 0


def everything(store: Store) -> list[Records]:
    """Return all records of a store.

    Raises
    ------
    InputError
        If a file is damaged.
    """
    return [records for path in store.paths() for records in read_sections(path)]


def export(store: Store, path: Path) -> int:
    """Write all records into one file; return of how many workloads.

    Raises
    ------
    InputError
        If a file of the store is damaged; nothing is written then.
    """
    there = everything(store)
    write_lines(path, there)
    return len(there)


def merge(store: Store, paths: Iterable[Path]) -> Merged:
    """Add the records of exported files to a store; what is there already stays as it is.

    Raises
    ------
    InputError
        If any file is not tuning records; nothing is added then.
    """
    found = []
    for path in paths:
        there = list(read_sections(path))
        if not there:
            raise InputError(f"{path}: holds no tuning records")
        found += there
    merged = Merged()
    for records in found:
        merged.workloads += 1
        merged.new += not store.path(records.header.key).exists()
        with store.open(records.header) as file:
            _add(file, records, merged)
    return merged


def _add(file: RecordFile, other: Records, merged: Merged) -> None:
    """Add to a workload what another search of it tried, as far as both proposed the same."""
    own = file.records
    common = _common(own, other)
    if len(own.rounds) < len(other.rounds) and common == len(own.candidates):
        start = common
        for count in other.rounds[len(own.rounds) :]:
            file.add(Round(other.candidates[start : start + count]))
            start += count
        common = start
    merged.apart += common < min(len(own.candidates), len(other.candidates))
    if own.baseline is None and other.baseline is not None:
        file.add(other.baseline)
    for number, trial in sorted(other.trials.items()):
        if number < common and number not in own.trials:
            file.add(trial)
            merged.trials += 1
    for choice in other.choices:
        known = any((made.trials, made.method) == (choice.trials, choice.method) for made in own.choices)
        if not known and all(own.trials.get(n) == other.trials.get(n) for n in range(choice.trials)):
            file.add(choice)


def _common(one: Records, other: Records) -> int:
    """Return how many candidates, from the first on, both have in the same rounds."""
    count = 0
    for mine, theirs in zip(one.rounds, other.rounds, strict=False):
        same = one.candidates[count : count + mine] == other.candidates[count : count + theirs]
        if mine != theirs or not same:
            break
        count += mine
    return count
