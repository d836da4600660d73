"""How texts name parameters: as Python does, in backquotes, and in a command as its options."""

from __future__ import annotations

from collections.abc import Callable
from contextvars import ContextVar

SPELLING: ContextVar[Callable[[str], str]] = ContextVar("SPELLING", default=str)
"""What makes a command's text of one that names parameters: of `within=` or `jobs=2`."""


def spelled(text: str) -> str:
    """Return a text with parameters named for whoever reads it: who runs a command, or calls a function."""
    return SPELLING.get()(text)
