"""The functions that recompute the numbers of a README, by the names in its comments."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

from benchmarks.recomputed.kept import EXPERIMENTS
from benchmarks.studies import ROOT
from docs.building.places import is_generated

FRONT_PAGE = "front-page"
"""What the README of the whole is called; all of its functions are those of studies."""


def studies() -> list[str]:
    """Return the names of all studies."""
    return sorted(path.parent.name for path in EXPERIMENTS.glob("*/README.md"))


def pages() -> list[str]:
    """Return the pages of the documentation with numbers of studies, by their paths: ``docs/index.md``."""
    written = (page for page in sorted((ROOT / "docs").rglob("*.md")) if not is_generated(page))
    return [page.relative_to(ROOT).as_posix() for page in written if "<!-- = " in page.read_text()]


def readme(study: str) -> Path:
    """Return the README of a study, the front page, or a page of the documentation."""
    if study.endswith(".md"):
        return ROOT / study
    return ROOT / "README.md" if study == FRONT_PAGE else EXPERIMENTS / study / "README.md"


def function_of(study: str, name: str) -> Callable[..., Any]:
    """Return a function of a study's module; ``precision.gain`` is another study's."""
    module, _, function = name.rpartition(".")
    found = importlib.import_module(f"benchmarks.recomputed.{module or study.replace('-', '_')}")
    return getattr(found, function)  # type: ignore[no-any-return]


def recompute(study: str, name: str, *given: Any) -> Any:
    """Call a function with the cells of a line, or with the words of a comment."""
    return function_of(study, name)(*given)
