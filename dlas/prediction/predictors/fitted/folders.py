"""The files of a fitted predictor's folder, which may come from elsewhere: their sizes and hashes."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from pathlib import Path

from dlas.errors import InputError

FILE = "predictor.json"
SUMS = "SHA256SUMS"
"""The hash of :data:`FILE`, as ``sha256sum -c`` reads it; predictors of before it was written have none."""
MOST_BYTES = 64 << 20
"""Largest ``predictor.json`` that is read: the ids of a million rows take 20 MB."""


def read_text(folder: Path, what: str) -> bytes:
    """Return the content of a predictor's JSON file.

    Parameters
    ----------
    what : str
        The folder as the user knows it, for messages.

    Raises
    ------
    InputError
        If there is none, it is too large, or it is not as it was written.
    """
    path = folder / FILE
    try:
        with path.open("rb") as file:
            text = file.read(MOST_BYTES + 1)
    except OSError:
        raise InputError(
            f"{what} is no predictor: it has no {FILE}; give a folder that `dlas fit --to` wrote"
        ) from None
    if len(text) > MOST_BYTES:
        raise InputError(f"{path} has over {MOST_BYTES:,} bytes")
    _check_sums(folder / SUMS, text)
    return text


def sums(text: bytes) -> str:
    """Return the content of :data:`SUMS` for that of a predictor's JSON file."""
    return f"{hashlib.sha256(text).hexdigest()}  {FILE}\n"


def _check_sums(path: Path, text: bytes) -> None:
    """Refuse a JSON file that was changed since it was written, where its hash was written, too."""
    expected = sums(text).encode()
    try:
        with path.open("rb") as file:
            written = file.read(len(expected) + 1)
    except FileNotFoundError:
        return
    except OSError as error:
        raise InputError(f"cannot read {str(path)!r}: {error.strerror}") from None
    if written != expected:
        raise InputError(
            f"{path.with_name(FILE)} was changed since the predictor was fitted: {SUMS} has another hash"
        )


def check_files(place: Path, files: Mapping[str, str]) -> None:
    """Refuse a folder that holds other files than were written.

    Parameters
    ----------
    place : Path
        Of the arrays of one setting.
    files : mapping of str to str
        The hash of each file, by its name.

    Raises
    ------
    InputError
    """
    found = {path.name for path in place.iterdir()} if place.is_dir() and not place.is_symlink() else set()
    if found != set(files):
        listed = ", ".join(sorted(files)) or "no files"
        raise InputError(f"{str(place)!r} must hold {listed}; it holds {', '.join(sorted(found)) or 'none'}")
    for name, digest in files.items():
        path = place / name
        if path.is_symlink() or not path.is_file():
            raise InputError(f"{str(path)!r} is no file")
        if sha256(path) != digest:
            raise InputError(f"{path} was changed since the predictor was fitted: its hash differs")


def sha256(path: Path) -> str:
    """Return the hash of a file."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
