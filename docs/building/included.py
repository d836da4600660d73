"""Pages that are files of the tree: how to contribute, what changed, benchmarks, and a notebook."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

from docs.building.links import rewritten, without_comments
from docs.building.places import PAGES


def pages() -> Iterator[tuple[Path, str]]:
    """Yield each page and its text."""
    for file, page in PAGES.items():
        if page.name != "index.md":
            text = file.read_text(encoding="utf-8")
            text = as_markdown(text) if file.suffix == ".ipynb" else without_comments(text)
            yield page, rewritten(text, file, page)


def as_markdown(notebook: str) -> str:
    """Return the cells of a notebook, which keeps no outputs, as Markdown text."""
    cells = json.loads(notebook)["cells"]
    texts = ((cell["cell_type"] == "code", "".join(cell["source"])) for cell in cells)
    return "\n\n".join(f"```python\n{text}\n```" if code else text for code, text in texts) + "\n"
