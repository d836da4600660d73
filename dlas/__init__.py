"""The Deep Learning Acceleration Stack: measure and predict what six layers do to each other.

``dlas.read(folder)`` gives the rows of a sweep as a DataFrame.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from dlas.rows.frame import read as read

    __version__: str


def __getattr__(name: str) -> Any:
    """Import pandas, and look for the version, only when somebody asks."""
    if name == "read":
        from dlas.rows.frame import read

        return read
    if name == "__version__":
        from importlib.metadata import PackageNotFoundError, version

        try:
            return version("dlas")
        except PackageNotFoundError:  # run from a source tree that was never installed
            return "unknown"
    raise AttributeError(f"module 'dlas' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted([*globals(), "__version__", "read"])
