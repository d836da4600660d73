"""The site builds without a warning, and every link within it leads somewhere."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
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


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("site")
    build = [sys.executable, "-m", "sphinx", "-W", "--keep-going", "-q", "-d", str(out / "trees"), "docs"]
    done = subprocess.run([*build, str(out / "html")], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return out / "html"


def written(site: Path) -> dict[Path, str]:
    """Return the text of each page, without those that hold a network or make their links themselves."""
    paths = {path.resolve() for path in site.rglob("*.html")} - set((site / "_static").resolve().rglob("*"))
    return {path: path.read_text(encoding="utf-8") for path in paths if path.parent.name != "atlas"}


def test_every_link_within_the_site_leads_somewhere(site: Path) -> None:
    pages = {path: Page(text) for path, text in written(site).items()}
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
                broken.append(f"{path.relative_to(site)}: {link}")
    assert not broken, "\n".join(broken)


def test_no_page_needs_a_network(site: Path) -> None:
    """Nothing but links that a reader follows leads out of the site."""
    for path, text in written(site).items():
        for tag in ("<script", '<link rel="stylesheet"'):
            for part in text.split(tag)[1:]:
                assert "http" not in part.partition(">")[0], f"{path}: {tag}{part[:200]}"


def test_the_atlas_and_the_front_pages_network_are_in_it(site: Path) -> None:
    assert (site / "atlas/index.html").stat().st_size <= 6_000_000
    assert (site / "_static/network.html").exists()
