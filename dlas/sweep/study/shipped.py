"""The studies that come with the package: an installed one has them without a checkout."""

from __future__ import annotations

import importlib
from pathlib import Path

FOLDER = Path(next(iter(importlib.import_module("dlas.experiments").__path__)))
STUDY = "study.toml"


def shipped(path: Path) -> Path:
    """Return the file that a path means.

    It is a file of the user's own if there is one, else one of :data:`FOLDER`: ``quickstart`` and
    ``experiments/quickstart/study.toml`` are the same study.  A path that means none is returned as it is.
    """
    if path.exists() or ".." in path.parts:
        return path
    inside = FOLDER / (path.relative_to("experiments") if path.parts[:1] == ("experiments",) else path)
    return next((file for file in (inside, inside / STUDY) if file.is_file()), path)


def names() -> list[str]:
    """Return the names of the studies that come with the package."""
    return sorted(file.parent.name for file in FOLDER.glob(f"*/{STUDY}"))
