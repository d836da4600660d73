"""TOML written by people: read within bounds, with errors that quote the broken line; values on one line."""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from dlas.errors import InputError

MOST_BYTES = 1_000_000
"""Largest file that is read."""
MOST_QUOTED = 160
"""Characters of a broken line that a message shows."""


def read(path: Path, what: str) -> dict[str, Any]:
    """Return the content of a TOML file.

    Parameters
    ----------
    what : str
        The kind of file, for messages: ``profile``.

    Raises
    ------
    InputError
        If it cannot be read or is broken; names the file and shows the line.
    """
    text = read_text(path, what)
    try:
        return parse(text)
    except InputError as error:
        raise InputError(f"{path}: {error}") from None


def read_text(path: Path, what: str) -> str:
    """Return the text of a file; raises as :func:`read`."""
    check_regular(path, what)
    try:
        with path.open("rb") as stream:
            content = stream.read(MOST_BYTES + 1)
    except OSError as error:
        raise InputError(f"cannot read the {what} {str(path)!r}: {error.strerror}") from None
    if len(content) > MOST_BYTES:
        raise InputError(f"{path}: a {what} of over {MOST_BYTES:,} bytes")
    try:
        return content.decode("utf-8-sig")  # editors on Windows begin files with a mark
    except UnicodeDecodeError:
        raise InputError(f"{path}: not a text file in UTF-8") from None


def check_regular(path: Path, what: str) -> None:
    """Refuse a folder, a pipe or a device in the place of a file: reading it may never end.

    Parameters
    ----------
    what : str
        What it should be, for messages: ``study``.

    Raises
    ------
    InputError
    """
    if path.exists() and not path.is_file():
        kind = "a folder" if path.is_dir() else "a pipe or a device"
        raise InputError(f"cannot read the {what} {str(path)!r}: it is {kind}")


def parse(text: str) -> dict[str, Any]:
    """Return the content of a TOML text.

    Raises
    ------
    InputError
        If it is broken; shows the line.
    """
    try:
        return tomllib.loads(text)
    except RecursionError:
        raise InputError("broken TOML: nested too deeply") from None
    except ValueError as error:
        place = re.search(r"line (\d+), column (\d+)", str(error))
        lines = text.splitlines() or [""]
        number = int(place.group(1)) if place else len(lines)
        line = lines[min(number, len(lines)) - 1]
        raise InputError(f"broken TOML: {error}: line {number} is {line.strip()[:MOST_QUOTED]!r}") from None


def on_one_line(value: Any) -> str:
    """Return a value as TOML on one line: ``{ name = "local_cpu", threads = 2 }``."""
    if isinstance(value, Mapping):
        return f"{{ {', '.join(f'{key} = {on_one_line(inner)}' for key, inner in value.items())} }}"
    if isinstance(value, list):
        return f"[{', '.join(map(on_one_line, value))}]"
    return json.dumps(value, ensure_ascii=False)
