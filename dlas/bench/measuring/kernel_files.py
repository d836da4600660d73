"""Files of /proc and /sys: what cannot be read is None."""

from __future__ import annotations

from pathlib import Path


def read_text(path: Path) -> str | None:
    """Return what a file says, without the space around it."""
    try:
        return path.read_text(encoding="utf-8", errors="replace").strip()
    except OSError:
        return None


def read_number(path: Path) -> int | None:
    """Return the whole number that a file says."""
    said = read_text(path) or ""
    return int(said) if said.removeprefix("-").isdecimal() else None
