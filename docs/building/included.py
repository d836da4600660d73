"""Pages that are files of the tree's root: how to contribute, what changed, and benchmarks."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from docs.building.links import rewritten, without_comments
from docs.building.places import DOCS, PAGES


def pages() -> Iterator[tuple[Path, str]]:
    """Yield each page and its text."""
    for file, page in PAGES.items():
        if page.parent == DOCS and page.name != "index.md":
            yield page, rewritten(without_comments(file.read_text(encoding="utf-8")), file, page)
