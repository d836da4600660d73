"""The study that a results folder keeps, so that the folder alone is enough to go on."""

from __future__ import annotations

from pathlib import Path

from dlas.bench.store import toml
from dlas.bench.store.replacing import replacing
from dlas.errors import InputError
from dlas.sweep.rows.missing import FILE, HEADING, body, headed
from dlas.sweep.study.study import Study


def check_keepable(folder: Path, text: str) -> None:
    """Refuse a folder with a study of the user's own that is another than the one in a text.

    Raises
    ------
    InputError
    """
    path = folder / FILE
    if path.exists() and not _is_kept(path) and Study.read(path).written != toml.parse(text):
        raise InputError(
            f"{str(path)!r} is a study of your own, and another: give another `out=`, or run {str(path)!r}"
        )


def keep(folder: Path, text: str, points: int | None = None, others: int = 0) -> None:
    """Write the text of a study into its results folder in one step, unless the user's own file is there.

    Parameters
    ----------
    points, others : int, optional
        As for :func:`dlas.sweep.rows.missing.headed`.  Without them those noted for the same text stay.
    """
    path = folder / FILE
    if path.exists():
        if not _is_kept(path):
            return
        before = path.read_text(encoding="utf-8", errors="replace")
        if points is None and before != HEADING + text and body(before) == text:
            return
    with replacing(path) as partial:
        partial.write_text(headed(text, points, others), encoding="utf-8")


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
    toml.check_regular(path, "study")
    try:
        with path.open("rb") as file:
            return file.read(len(HEADING)) == HEADING.encode()
    except OSError as error:
        raise InputError(f"cannot read {str(path)!r}: {error.strerror}") from None
