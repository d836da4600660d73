"""What Sphinx calls: pages are written before it reads any, links rewritten, the atlas made at the end."""

from __future__ import annotations

import itertools
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import dlas
from dlas.sweep.rows.files import PACKED_FILE
from docs.building import commands, gallery, included, options, python
from docs.building.drawing import draw_all
from docs.building.links import rewritten, without_comments
from docs.building.places import DOCS, EXPERIMENTS, is_generated
from docs.building.readmes import listed

if TYPE_CHECKING:
    from sphinx.application import Sphinx


def setup(app: Sphinx) -> dict[str, Any]:
    """Register what happens during a build."""
    app.connect("builder-inited", write_pages)
    app.connect("source-read", rewrite_links)
    app.connect("build-finished", make_atlas)
    return {"parallel_read_safe": True, "parallel_write_safe": True}


def write_pages(app: Sphinx | None = None) -> None:
    """Write all pages that are made from the source."""
    kept = [experiment.name for experiment in listed() if experiment.kept]
    made = itertools.chain(
        included.pages(), commands.pages(), options.pages(), python.pages(), gallery.pages(draw_all(kept))
    )
    written = [_write(page, text) for page, text in made]
    _remove_others(written)


def rewrite_links(app: Sphinx, name: str, source: list[str]) -> None:
    """Rewrite the links of a page that somebody wrote so that those that leave ``docs/`` work."""
    page = Path(app.env.doc2path(name))
    if page.suffix == ".md" and not is_generated(page):
        source[0] = rewritten(without_comments(source[0]), page, page)


def make_atlas(app: Sphinx, error: Exception | None) -> None:
    """Write the atlas of all kept rows beside the pages."""
    if error is None and app.builder.format == "html":
        folders = sorted(file.parent for file in EXPERIMENTS.glob(f"*/*/{PACKED_FILE}"))
        dlas.atlas(folders, to=Path(app.outdir) / "atlas")


def _write(page: Path, text: str) -> Path:
    """Write a page unless it says the same already: Sphinx reads anew what is newer."""
    page.parent.mkdir(parents=True, exist_ok=True)
    if not page.exists() or page.read_text(encoding="utf-8") != text:
        page.write_text(text, encoding="utf-8")
    return page


def _remove_others(written: Iterable[Path]) -> None:
    """Remove pages of an earlier build whose source is gone."""
    for page in {page for page in DOCS.rglob("*.md") if is_generated(page)} - set(written):
        page.unlink()
