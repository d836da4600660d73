"""Files and folders that the user names for results.

Files are replaced atomically: a reader sees the old content or the new, never a mixture.
"""

from __future__ import annotations

import os
import shutil
import uuid
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from dlas.errors import InputError


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """Yield a path to write to; on exit it replaces ``path``, or is deleted if writing failed.

    Nothing is synced to the disk: a killed process leaves a complete file, a power cut may not.

    Yields
    ------
    Path
        In the same folder, unique to this process.

    Raises
    ------
    OSError
        If it cannot replace ``path``.
    """
    partial = path.with_name(f".{path.name}.{os.getpid()}.partial")
    try:
        yield partial
        os.replace(partial, path)
    finally:
        with suppress(OSError):  # a missing folder has already failed the write
            partial.unlink(missing_ok=True)


def make_folder(path: Path, what: str) -> None:
    """Create a folder unless it exists, and check that files can be written to it.

    Parameters
    ----------
    what : str
        The folder's purpose, for messages: ``cache``.

    Raises
    ------
    InputError
        If it is a file, or cannot be created or written to.
    """
    try:
        path.mkdir(parents=True, exist_ok=True)
    except (FileExistsError, NotADirectoryError):
        file = next(place for place in (path, *path.parents) if place.exists())
        raise InputError(f"the {what} {str(path)!r} cannot be a folder: {str(file)!r} is a file") from None
    except OSError as error:
        raise InputError(f"cannot create the {what} {str(path)!r}: {error.strerror}") from None
    if not os.access(path, os.W_OK | os.X_OK):
        raise InputError(f"the {what} {str(path)!r} cannot be written to: no permission")


@contextmanager
def new_folder(target: Path, parameter: str) -> Iterator[Path]:
    """Yield a folder that becomes ``target``, or is removed if its body fails.

    Parameters
    ----------
    target : Path
        It does not exist, or is empty.
    parameter : str
        What names it, for messages.

    Raises
    ------
    InputError
        If it cannot be written.
    """
    above = next(place for place in target.absolute().parents if place.is_dir())
    partial = above / f".{target.name}.{uuid.uuid4().hex}.partial"
    try:
        partial.mkdir()
        yield partial
        target.parent.mkdir(parents=True, exist_ok=True)
        partial.rename(target)
    except OSError as error:
        raise InputError(f"`{parameter}={str(target)!r}` cannot be written: {error}") from error
    finally:
        shutil.rmtree(partial, ignore_errors=True)
