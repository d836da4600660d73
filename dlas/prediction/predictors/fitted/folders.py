"""The files of a fitted predictor's folder, which may come from elsewhere: their sizes and hashes."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from pathlib import Path

from dlas.errors import InputError

FILE = "predictor.json"
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
        If there is none, or it is too large.
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
    return text


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
