"""The study that a results folder keeps, so that the folder alone is enough to go on."""

from __future__ import annotations

from pathlib import Path

from dlas.bench.store.replacing import replacing
from dlas.errors import InputError
from dlas.sweep.study.reading import read_study
from dlas.sweep.study.study import Study

FILE = "study.toml"
HEADING = "# Written by `dlas run`; `dlas run` with this folder goes on with it.\n"
"""First line of the files that are written here, which tells them from the user's own."""


def check_keepable(folder: Path, study: Study) -> None:
    """Refuse a folder with a study of the user's own that is another.

    Raises
    ------
    InputError
    """
    path = folder / FILE
    if path.exists() and not _is_kept(path) and read_study(path).written != study.written:
        raise InputError(
            f"{str(path)!r} is a study of your own, and another: give another `out=`, or run {str(path)!r}"
        )


def keep(folder: Path, study: Study) -> None:
    """Write the study into its results folder in one step, unless the user's own file is there."""
    path = folder / FILE
    if not path.exists() or _is_kept(path):
        with replacing(path) as partial:
            partial.write_text(HEADING + study.toml(), encoding="utf-8")


def kept_study(folder: Path) -> Path:
    """Return the file of the study that a results folder keeps.

    Raises
    ------
    InputError
        If it keeps none.
    """
    path = folder / FILE
    if not path.is_file():
        raise InputError(
            f"no {FILE} in {str(folder)!r}: give a study file, or a folder that `dlas run --out` wrote"
        )
    return path


def _is_kept(path: Path) -> bool:
    try:
        with path.open("rb") as file:
            return file.read(len(HEADING)) == HEADING.encode()
    except OSError as error:
        raise InputError(f"cannot read {str(path)!r}: {error.strerror}") from None
