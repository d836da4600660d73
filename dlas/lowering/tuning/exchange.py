"""Tuning records of several machines in one store: export to one file, merge from several."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from dlas.errors import InputError
from dlas.lowering.tuning.record_files import RecordFile, RecordStore, read_sections, write_lines
from dlas.lowering.tuning.records import Records, Round


@dataclass
class MergeReport:
    """Counts of a merge."""

    workloads: int = 0
    """Workloads in the files."""
    new: int = 0
    """Workloads of which the store had no records."""
    trials: int = 0
    """Trials added."""
    diverged: int = 0
    """Workloads whose searches proposed different candidates; later trials than the first difference are left
    out.
    """


def all_records(store: RecordStore) -> list[Records]:
    """Return all records of a store.

    Raises
    ------
    InputError
        If a file is damaged.
    """
    return [records for path in store.paths() for records in read_sections(path)]


def export(store: RecordStore, path: Path) -> int:
    """Write all records into one file; return how many workloads they are of.

    Raises
    ------
    InputError
        If a file of the store is damaged, and nothing is written then, or the file cannot be written.
    """
    records = all_records(store)
    try:
        write_lines(path, records)
    except OSError as error:
        raise InputError(f"cannot write {str(path)!r}: {error.strerror or error}") from None
    return len(records)


def merge(store: RecordStore, paths: Iterable[Path]) -> MergeReport:
    """Add the records of exported files to a store; existing records stay unchanged.

    Raises
    ------
    InputError
        If any file is not tuning records; nothing is added then.
    """
    imported: list[Records] = []
    for path in paths:
        sections = list(read_sections(path))
        if not sections:
            raise InputError(f"{path}: holds no tuning records")
        imported += sections
    report = MergeReport()
    for records in imported:
        report.workloads += 1
        report.new += not store.path(records.header.key).exists()
        with store.open(records.header) as file:
            _add(file, records, report)
    return report


def _add(file: RecordFile, other: Records, report: MergeReport) -> None:
    """Add another search's records of a workload, as far as both searches proposed the same candidates."""
    own = file.records
    common = _common(own, other)
    if len(own.rounds) < len(other.rounds) and common == len(own.candidates):
        start = common
        for count in other.rounds[len(own.rounds) :]:
            file.add(Round(other.candidates[start : start + count]))
            start += count
        common = start
    report.diverged += common < min(len(own.candidates), len(other.candidates))
    if own.baseline is None and other.baseline is not None:
        file.add(other.baseline)
    for number, trial in sorted(other.trials.items()):
        if number < common and number not in own.trials:
            file.add(trial)
            report.trials += 1
    present = [(selection.trials, selection.method) for selection in own.selections]
    for selection in other.selections:
        is_new = (selection.trials, selection.method) not in present
        if is_new and all(own.trials.get(n) == other.trials.get(n) for n in range(selection.trials)):
            file.add(selection)


def _common(own: Records, other: Records) -> int:
    """Return how many candidates, from the first on, both have in the same rounds."""
    count = 0
    for mine, theirs in zip(own.rounds, other.rounds, strict=False):
        same = own.candidates[count : count + mine] == other.candidates[count : count + theirs]
        if mine != theirs or not same:
            break
        count += mine
    return count
