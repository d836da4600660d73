"""The site builds without a warning, and every link within it leads somewhere."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from collections.abc import Mapping
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest

from tests.fixtures.package import ROOT

pytestmark = [
    pytest.mark.ci,
    pytest.mark.timeout(900),
    pytest.mark.skipif(
        any(importlib.util.find_spec(name) is None for name in ("sphinx", "myst_parser", "sphinx_design")),
        reason="the extra `docs` is not installed",
    ),
]


class Page(HTMLParser):
    """The links and anchors of a page."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.links: list[str] = []
        self.anchors: set[str] = set()
        self.feed(text)

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        named = dict(attributes)
        self.anchors |= {name for name in (named.get("id"), named.get("name")) if name}
        self.links += [link for link in (named.get("href"), named.get("src")) if link]


def test_the_site_builds_without_a_warning_and_is_whole(tmp_path: Path) -> None:
    """One test, since building takes a minute and tests are spread over processes."""
    build = [
        sys.executable,
        "-m",
        "sphinx",
        "-W",
        "--keep-going",
        "-q",
        "-d",
        str(tmp_path / "trees"),
        "docs",
    ]
    site = (tmp_path / "html").resolve()
    done = subprocess.run([*build, str(site)], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    texts = written(site)
    assert broken_links(texts) == []
    for path, text in texts.items():
        assert not loaded_from_elsewhere(text), path
    assert (site / "atlas/index.html").stat().st_size <= 6_000_000
    assert (site / "_static/network.html").exists()


def written(site: Path) -> dict[Path, str]:
    """Return the text of each page, without those that hold a network or make their links themselves."""
    paths = set(site.rglob("*.html")) - set((site / "_static").rglob("*"))
    return {path: path.read_text(encoding="utf-8") for path in paths if path.parent.name != "atlas"}


def broken_links(texts: Mapping[Path, str]) -> list[str]:
    """Return the links within the site that lead to no page, file or anchor."""
    pages = {path: Page(text) for path, text in texts.items()}
    broken = []
    for path, page in pages.items():
        for link in page.links:
            parts = urlsplit(link)
            if parts.scheme or parts.netloc:
                continue
            target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            known = pages.get(target)
            there = parts.fragment in {"", *known.anchors} if known else target.exists()
            if not there:
                broken.append(f"{path.name}: {link}")
    return broken


def loaded_from_elsewhere(text: str) -> list[str]:
    """Return the scripts and styles of a page that a browser would ask a network for."""
    tags = [
        part.partition(">")[0]
        for tag in ("<script", '<link rel="stylesheet"')
        for part in text.split(tag)[1:]
    ]
    return [tag for tag in tags if "http" in tag]
