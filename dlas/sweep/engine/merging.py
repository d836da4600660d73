"""Joining results folders, such as those of a study's shards, into a new one."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO

from dlas.bench.store import toml
from dlas.bench.store.replacing import make_folder, new_folder
from dlas.errors import InputError, listed
from dlas.stack.types import Say
from dlas.sweep.rows.files import FILE
from dlas.sweep.rows.labels import rows as counted
from dlas.sweep.rows.machines import machine_id
from dlas.sweep.rows.missing import FILE as STUDY
from dlas.sweep.rows.missing import body
from dlas.sweep.rows.results import CURVES, Row, read_current
from dlas.sweep.study.kept import keep
from dlas.sweep.study.study import Study

APART = "apart-{}"
"""Folders in the new one for rows of points that it has with another key or from another machine."""
BESIDE = (("logs", ".log"), (CURVES, ".json"))
"""Folders with a file for each row, by its id, and how these files end."""


@dataclass(frozen=True)
class _Version:
    """A row of a point: where it is, and what tells whether it is the same measurement as another."""

    folder: int
    key: str
    machine: str | None
    started: str

    def repeats(self, other: _Version) -> bool:
        """Return whether both are of one key and machine; a row without a machine is of any."""
        return self.key == other.key and (
            None in (self.machine, other.machine) or self.machine == other.machine
        )


@dataclass
class Merged:
    """What was joined."""

    rows: int = 0
    """Rows in the new folder."""
    replaced: int = 0
    """Rows that gave way to a later one of the same point, key and machine."""
    apart: list[Path] = field(default_factory=list)
    """Folders with rows of points that the new one has with another key or from another machine."""


def merge(
    folders: Iterable[str | os.PathLike[str]],
    out: str | os.PathLike[str],
    *,
    say: Say = lambda line: None,
) -> Merged:
    """Join the rows of folders of one study into a new folder, in which a sweep can go on.

    Of two rows of a point with the same key and machine the later one counts.  Rows of a point with
    another key or from another machine are kept apart, in folders of their own.

    Parameters
    ----------
    folders : sequence of path
        What ``dlas run`` wrote, such as shards of a study.
    out : path
        The new folder.

    Raises
    ------
    InputError
        If a folder holds no rows, they are of several studies, or ``out`` exists and is not empty; nothing
        has been written then.
    """
    sources, target = list(map(Path, folders)), Path(out)
    _check(sources, target)
    versions = _versions(sources)
    _check_one_study(sources, [names for names, _ in versions])
    chosen, replaced = _chosen([rows for _, rows in versions])
    merged = Merged(replaced=replaced)
    with new_folder(target, "out") as partial:
        for number, places in enumerate(chosen):
            folder = partial / APART.format(number) if number else partial
            merged.rows += len(places) if number == 0 else 0
            merged.apart += [target / folder.name] if number else []
            _write(folder, sources, places)
            _keep_study(folder, sources, places, say)
    say(f"{counted(merged.rows)} of {len(sources)} folders: {target}")
    if replaced:
        say(f"{counted(replaced)} gave way to a later one of the same point, key and machine")
    for folder, places in zip(merged.apart, chosen[1:], strict=True):
        say(f"{counted(len(places))} of points with another key or from another machine: {folder}")
    return merged


def _check(sources: Sequence[Path], target: Path) -> None:
    """Refuse too few folders, one that is given twice, and a target that is one of them or holds anything."""
    if len(sources) < 2:
        raise InputError("give the folders to join, two or more")
    real = [source.resolve() for source in sources]
    for source in sources:
        if real.count(source.resolve()) > 1:
            raise InputError(f"{str(source)!r} is given twice")
        if target.resolve() == source.resolve() or source.resolve() in target.resolve().parents:
            raise InputError(
                f"`out={str(target)!r}` is in {str(source)!r}, whose rows are joined: give a new one"
            )
    if target.exists() and not (target.is_dir() and not any(target.iterdir())):
        raise InputError(f"`out={str(target)!r}` exists and is not an empty folder: give a new one")


def _versions(sources: Sequence[Path]) -> list[tuple[set[str], dict[str, _Version]]]:
    """Return of each folder the names of its rows' studies, and its rows by the ids of their points."""
    found = []
    for number, source in enumerate(sources):
        names, rows = set(), {}
        for row in read_current(source, Row.parse):
            names.add(row.study)
            rows[row.id] = _Version(number, row.key, machine_id(row.device), row.started or "")
        found.append((names, rows))
    return found


def _check_one_study(sources: Sequence[Path], names: Sequence[set[str]]) -> None:
    for source, own in zip(sources, names, strict=True):
        if own != names[0]:
            raise InputError(
                f"{str(sources[0])!r} holds rows of {listed(sorted(names[0]))}, and {str(source)!r} of "
                f"{listed(sorted(own))}: rows of one study are joined; others are read together, "
                f"`dlas table {sources[0]} {source}`"
            )


def _chosen(folders: Sequence[dict[str, _Version]]) -> tuple[list[dict[str, int]], int]:
    """Return for each folder to write the sources of its rows by their ids, and how many rows gave way."""
    chosen: list[dict[str, int]] = [{}]
    replaced = 0
    for row_id in dict.fromkeys(row_id for rows in folders for row_id in rows):
        every = [rows[row_id] for rows in folders if row_id in rows]
        kept: list[_Version] = []
        for version in sorted(every, key=lambda version: (version.started, version.folder), reverse=True):
            if any(version.repeats(other) for other in kept):
                replaced += 1
            else:
                kept.append(version)
        for number, version in enumerate(kept):
            if number == len(chosen):
                chosen.append({})
            chosen[number][row_id] = version.folder
    return chosen, replaced


def _write(folder: Path, sources: Sequence[Path], places: dict[str, int]) -> None:
    """Write the chosen rows, in the order of their folders, and the files beside them."""
    make_folder(folder, "results folder")
    with ExitStack() as stack:
        file: IO[bytes] = stack.enter_context((folder / FILE).open("wb"))
        for number, source in enumerate(sources):
            ids = [row_id for row_id, place in places.items() if place == number]
            for line in _lines(source, ids):
                file.write(line)
            for name, suffix in BESIDE:
                for row_id in ids:
                    _copy(source / name / f"{row_id}{suffix}", folder / name)
        file.flush()
        os.fsync(file.fileno())


def _lines(source: Path, ids: Sequence[str]) -> Iterator[bytes]:
    return read_current(source, _whole, ids=ids)


def _whole(line: bytes) -> bytes:
    """Return a line of a row; raises as :meth:`Row.parse` does."""
    Row.parse(line)
    return line


def _copy(path: Path, folder: Path) -> None:
    if path.is_file():
        folder.mkdir(exist_ok=True)
        shutil.copyfile(path, folder / path.name)


def _keep_study(folder: Path, sources: Sequence[Path], places: dict[str, int], say: Say) -> None:
    """Keep the study of the folders, with the number of its points, so that a sweep can go on."""
    files = {source: source / STUDY for source in sources if (source / STUDY).exists()}
    texts = {source: body(toml.read_text(file, "study")) for source, file in files.items()}
    if not texts:
        return
    first, *others = texts
    for other in others:
        if texts[other] != texts[first]:
            say(f"the study of {other} differs from that of {first}, which is kept")
    try:
        ids = {point.id for point in Study.parse(texts[first]).points()}
    except InputError:  # a part of the user's own that is not here
        keep(folder, texts[first])
    else:
        keep(folder, texts[first], len(ids), len(places.keys() - ids))
