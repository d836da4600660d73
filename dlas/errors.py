"""Bad input: one clear message that quotes the input, says what was expected and lists what exists."""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from typing import ClassVar, Literal


class InputError(ValueError):
    """Something the user wrote cannot be used; the command line prints the message and exits with 2."""


def unknown(what: str, given: str, known: Iterable[str]) -> InputError:
    """Return the error for a name that does not exist.

    Parameters
    ----------
    what : str
        What the name was to be, e.g. ``compiler``.
    given : str
        The name as the user wrote it.
    known : iterable of str
        Every name that exists.

    Returns
    -------
    InputError
        Quotes the name, suggests the nearest and lists the known ones, shortened past 40.
    """
    names = sorted(known)
    nearest = difflib.get_close_matches(given, names, n=1)
    hint = f"; did you mean {nearest[0]!r}?" if nearest else ""
    listed = ", ".join(names[:40]) + (f", and {len(names) - 40} more" if len(names) > 40 else "")
    return InputError(f"unknown {what} {given!r}{hint} (there are: {listed})")


class PointError(Exception):
    """Ends a point with a row of its own status; the message becomes the row's reason."""

    status: ClassVar[Literal["failed", "unsupported", "wrong"]] = "failed"
    """The row's status."""
    damaged_artifact: ClassVar[bool] = False
    """Whether it failed over an artifact that can be made again."""


class Unsupported(PointError):
    """A combination that cannot be done; the message says why and becomes the row's reason."""

    status = "unsupported"


class MissingData(Unsupported):
    """Data that the user has to provide is not there; says where it was looked for and how to get it."""


class WrongOutput(PointError):
    """A build does not compute what its network's reference function computes."""

    status = "wrong"


class CorruptArtifact(PointError):
    """An artifact's file is not what its manifest says; it has to be made again."""

    damaged_artifact = True
