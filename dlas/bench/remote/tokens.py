"""Tokens: who may run code on a board.  Each server has one, in a file that only its owner reads."""

from __future__ import annotations

import os
import re
import secrets
from pathlib import Path

from dlas.errors import InputError, Unreachable

VARIABLE = "DLAS_TOKEN"
"""The environment variable that holds a token instead of the default file."""
KEY = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
TOKEN = re.compile(r"[A-Za-z0-9._~+/=-]{16,256}")
"""Printable and without spaces, which separate the options of TVM's handshake."""
MOST_BYTES = 1024


def default_path(key: str) -> Path:
    """Return where a server keeps its token, and where the desk looks for its copy.

    Raises
    ------
    InputError
        If the key is no name of a file.
    """
    if not KEY.fullmatch(key):
        raise InputError(f"key = {key!r}: expected letters, digits, '.', '_' and '-', at most 64 of them")
    return Path.home() / ".config" / "dlas" / "tokens" / key


def of_key(key: str) -> str:
    """Return a server's token: that in the environment variable ``DLAS_TOKEN``, or in its default file.

    Raises
    ------
    Unreachable
        If neither holds one.
    InputError
        If the key is no name of a file.
    """
    path = default_path(key)
    if VARIABLE in os.environ:
        return _checked(os.environ[VARIABLE], f"the environment variable {VARIABLE}")
    return read(path)


def read(path: Path) -> str:
    """Return the token in a file.

    Raises
    ------
    Unreachable
        If it holds none; the message never quotes what it holds.
    """
    try:
        with path.open(encoding="utf-8", errors="replace") as stream:
            content = stream.read(MOST_BYTES)
    except FileNotFoundError:
        raise Unreachable(
            f"no token: {path} does not exist; copy it from the board, where `dlas serve` printed its path"
        ) from None
    except OSError as error:
        raise Unreachable(f"no token: {path} cannot be read: {error.strerror}") from None
    return _checked(content, str(path))


def read_or_make(path: Path) -> str:
    """Return a server's token; the first time, make one in a file that only its owner reads.

    Raises
    ------
    InputError
        If the file holds no token, can be read by others, or cannot be written.
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        if path.exists() and path.stat().st_mode & 0o077:
            raise InputError(f"others can read the token in {path}: chmod 600 {path}")
        if not path.exists():
            with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as stream:
                stream.write(secrets.token_urlsafe(32) + "\n")
        return _checked(path.read_text(encoding="utf-8", errors="replace"), str(path))
    except OSError as error:
        raise InputError(f"{path}: {error.strerror}: a server keeps its token there") from None
    except Unreachable as error:
        raise InputError(str(error)) from None


def _checked(content: str, place: str) -> str:
    token = content.strip()
    if not TOKEN.fullmatch(token):
        raise Unreachable(f"{place} holds no token: expected 16 to 256 letters, digits and any of ._~+/=-")
    return token
