"""Where the files of the tree are in the site."""

from __future__ import annotations

import os
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"
GALLERY = DOCS / "gallery"
EXPERIMENTS = ROOT / "experiments"
README = "README.md"
PAGES = {
    ROOT / README: DOCS / "index.md",
    ROOT / "CONTRIBUTING.md": DOCS / "contributing.md",
    ROOT / "CHANGELOG.md": DOCS / "changelog.md",
    ROOT / "benchmarks" / README: DOCS / "benchmarks.md",
    EXPERIMENTS / README: GALLERY / "index.md",
    DOCS / "guides" / "python.ipynb": DOCS / "guides" / "python.md",
}
"""The pages that stand for files outside ``docs/``, and for a notebook."""
SOURCES = {page: file for file, page in PAGES.items()}
GENERATED = ("gallery/", "reference/commands/", "reference/python/", "reference/options.md")
"""What is written at every build, below ``docs/``, beside the pages of the root."""


def page_of(file: Path) -> Path | None:
    """Return the page of the site that stands for a file or folder of the tree; None where there is none."""
    file = file / README if file.is_dir() else file
    if file in PAGES:
        return PAGES[file]
    if file.name == README and file.parent.parent == EXPERIMENTS:
        return GALLERY / f"{file.parent.name}.md"
    return file if file.is_relative_to(DOCS) and file.suffix == ".md" else None


def is_generated(page: Path) -> bool:
    """Return whether a page of ``docs/`` is written by the build."""
    name = page.relative_to(DOCS).as_posix()
    return name.startswith(GENERATED) or (page in SOURCES and page.name != "index.md")


def relative(target: Path, page: Path) -> str:
    """Return the path from a page to a file, as links write it."""
    return Path(os.path.relpath(target, page.parent)).as_posix()
