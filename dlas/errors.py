"""Errors: bad input from the user, and failures that end a point with a row of its own status."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Sequence
from typing import ClassVar, Literal

MOST_LISTED = 40
"""Most names that a message lists."""
MOST_CHARACTERS = 400
"""Most of another library's message that is quoted."""


class DamagedRows(UserWarning):
    """Lines of a results file are no rows and are left out; the message names the file and the lines."""


class InputError(ValueError):
    """Bad input; the command line prints the message and exits with 2.

    Messages quote the input, say what was expected and list the valid values.
    """


class Unfinished(RuntimeError):
    """A sweep stopped before its end, with all its rows complete; the message says how to go on."""


def unknown(kind: str, name: str, valid: Iterable[str]) -> InputError:
    """Return the error for a name that does not exist.

    Parameters
    ----------
    kind : str
        What the name should refer to, e.g. ``compiler``.
    name : str
        As the user wrote it.
    valid : iterable of str
        Every name that exists.

    Returns
    -------
    InputError
        Quotes the name, suggests the most similar valid one and lists at most 40 of them.
    """
    names = sorted(valid)
    nearest = difflib.get_close_matches(name, names, n=1)
    hint = f"; did you mean {nearest[0]!r}?" if nearest else ""
    return InputError(f"unknown {kind} {name!r}{hint} (there are: {listed(names)})")


def one_line(text: str, most: int = MOST_CHARACTERS) -> str:
    """Return what a library or a file says on one line that a terminal can show, cut."""
    joined = " ".join(text[: 2 * most].split())
    told = "".join(each if each.isprintable() else ascii(each)[1:-1] for each in joined)
    return told if len(told) <= most else f"{told[: most - 1]}…"


def listed(names: Sequence[str], most: int = MOST_LISTED) -> str:
    """Return names with commas between them, of very many the first ones and how many more."""
    more = len(names) - most
    return ", ".join(names[:most]) + (f", and {more:,} more" if more > 0 else "")


class PointError(Exception):
    """Ends a point with a row of its own status; the message becomes the row's reason."""

    status: ClassVar[Literal["failed", "unsupported", "wrong", "timeout"]] = "failed"
    """The row's status."""
    damaged_artifact: ClassVar[bool] = False
    """Whether the cause is an artifact that can be made again."""


class Unsupported(PointError):
    """A combination of parts that does not work; the message says why and becomes the row's reason."""

    status = "unsupported"


class MissingData(Unsupported):
    """Data that the user has to provide is missing; the message says where it should be and how to get it."""


class MissingPackage(Unsupported):
    """A package that a part needs is not installed; the message says how to install it."""


class WrongOutput(PointError):
    """A build does not compute what its network's reference function computes."""

    status = "wrong"


class CorruptArtifact(PointError):
    """An artifact is missing or does not match its manifest; it has to be made again."""

    damaged_artifact = True


class Unreachable(PointError):
    """A device cannot be reached, or was lost in the middle; the message says why.  It may come back."""


class SessionEnded(Unreachable):
    """A session has ended in the middle of a call, and the server on the device, which goes on, says how."""


class SessionTimeout(PointError):
    """A program has not ended within the time limit of a session on its device."""

    status = "timeout"
