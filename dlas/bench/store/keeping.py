"""Files of what a step has done so far: its next start goes on with them, unless anything altered them."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

from dlas.bench.store import fingerprint
from dlas.bench.store.replacing import replacing

MOST_BYTES = 64 << 20
"""Of a file that is read."""


class Altered(Exception):
    """A file does not hold what was written to it; the message says why, in a few words."""


def keep(path: Path, content: dict[str, Any]) -> None:
    """Replace a file, so that after a crash it holds the old content or the new.

    Parameters
    ----------
    content : dict
        JSON-able.

    Raises
    ------
    OSError
        If the disk is full; the file is left as it was.
    """
    path.parent.mkdir(exist_ok=True)
    with replacing(path) as partial, partial.open("w", encoding="utf-8") as out:
        json.dump({"digest": fingerprint.key(**content), "content": content}, out)
        out.flush()
        os.fsync(out.fileno())


def kept(path: Path) -> dict[str, Any] | None:
    """Return what :func:`keep` wrote, None where there is no file.

    Raises
    ------
    Altered
        If it was damaged or changed since, or cannot be read.
    """
    try:
        if path.stat().st_size > MOST_BYTES or not path.is_file():
            raise Altered("it is too large, or no plain file")
        read = json.loads(path.read_bytes())
        content: dict[str, Any] = read["content"]
        if read["digest"] != fingerprint.key(**content):
            raise Altered("it was changed since it was written")
    except FileNotFoundError:
        return None
    except OSError as error:
        raise Altered(f"it cannot be read: {error.strerror}") from None
    except (ValueError, TypeError, KeyError, RecursionError):
        raise Altered("it is damaged") from None
    return content
