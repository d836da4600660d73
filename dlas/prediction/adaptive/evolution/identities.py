"""Which estimators a search asked: digests of what their files hold, so that its tables can be recomputed."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from pathlib import Path

from dlas.errors import InputError


def identities(texts: Sequence[str]) -> dict[str, str]:
    """Return the SHA-256 of each estimator's or score's files, by its name.

    What is no file, such as ``measure``, has none.
    """
    found = {}
    for text in texts:
        path = Path(text).expanduser()
        if path.exists():
            found[text] = digest(path)
    return found


def digest(path: Path) -> str:
    """Return the SHA-256 of a file, or of the names and contents of all files in a folder."""
    if path.is_file():
        return hashlib.sha256(path.read_bytes()).hexdigest()
    content = hashlib.sha256()
    for file in sorted(each for each in path.rglob("*") if each.is_file()):
        content.update(f"{file.relative_to(path)} {digest(file)}\n".encode())
    return content.hexdigest()


def check_identities(before: Mapping[str, str], now: Mapping[str, str], folder: Path) -> None:
    """Refuse to go on with an estimator whose files have changed; older searches do not tell theirs.

    Raises
    ------
    InputError
        It names those that differ.
    """
    others = [text for text, own in now.items() if before.get(text, own) != own]
    if others:
        raise InputError(
            f"{str(folder)!r} holds an unfinished search by another content of "
            f"{', '.join(map(repr, others))}: give the same files to go on, or another folder"
        )
