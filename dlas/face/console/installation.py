"""Errors that say that an installed package is broken."""

from __future__ import annotations

import sys
import traceback

OWN = ("dlas", "__main__")


def broken_package(error: Exception) -> str | None:
    """Return, in one line, which package cannot be imported, and why; None for any other error."""
    package = _package(error)
    if package is None or package in OWN:
        return None
    reason = (str(error).strip() or type(error).__name__).partition("\n")[0]
    return f"the package {package!r} cannot be imported: {reason}; `dlas doctor` says what is wrong"


def _package(error: Exception) -> str | None:
    """Return the package whose import raised an error, or that is missing."""
    frames = [frame for frame, _ in traceback.walk_tb(error.__traceback__)]
    names = [frame.f_globals.get("__name__", "") for frame in frames if frame.f_code.co_name == "<module>"]
    packages = [str(name).partition(".")[0] for name in names]
    imported = [each for each in packages if each not in OWN and each not in sys.stdlib_module_names]
    if imported:
        return imported[0]
    missing = error.name if isinstance(error, ModuleNotFoundError) else None
    return missing and missing.partition(".")[0]
