"""Links of Markdown text, rewritten so that they work from a page of the site.

A file of the tree links to others by their paths.  The site has pages for some of these, offers other files
for download, and has no folders.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

from dlas.sweep.rows.files import PACKED_FILE
from docs.building.places import page_of, relative

FENCED = re.compile(r"^(?P<fence>`{3,}|~{3,}).*?^(?P=fence)[ \t]*$", re.MULTILINE | re.DOTALL)
CODE = r"(?P<code>`+)(?!`).+?(?<!`)(?P=code)(?!`)"
COMMENT = re.compile(rf"{CODE}|[ \t]*<!--.*?-->", re.DOTALL)
EMPTY_LINE = re.compile(r"^[ \t]*<!--(?:(?!-->).)*-->[ \t]*\n(?:[ \t]*\n)?", re.MULTILINE | re.DOTALL)
LABEL = r"(?:!\[[^\]]*\]\([^)]*\)|[^\[\]])*"
LINK = re.compile(rf"(?P<picture>!?)\[(?P<label>{LABEL})\]\((?P<to>[^()\s]+)\)|{CODE}", re.DOTALL)
ELSEWHERE = re.compile(r"^(?:[a-z]+:|#|/)")
"""Another site, or a heading of the same page."""


def outside_code(text: str, change: Callable[[str], str]) -> str:
    """Return Markdown text with a change of what stands outside its fenced blocks."""
    pieces, at = [], 0
    for found in FENCED.finditer(text):
        pieces += [change(text[at : found.start()]), found[0]]
        at = found.end()
    return "".join([*pieces, change(text[at:])])


def without_comments(text: str) -> str:
    """Return Markdown text without the comments that tell tests where its numbers come from."""

    def kept(found: re.Match[str]) -> str:
        return found[0] if found["code"] else ""

    return outside_code(text, lambda piece: COMMENT.sub(kept, EMPTY_LINE.sub("", piece)))


def rewritten(text: str, file: Path, page: Path) -> str:
    """Return Markdown text with links that work from a page of the site.

    Parameters
    ----------
    text : str
        Its links are paths from ``file``, or addresses.
    file : Path
        Where the text stands in the tree.
    page : Path
        Where it stands in the site's source; the same file for a page of ``docs/``.
    """

    def link(found: re.Match[str]) -> str:
        if found["code"] or (ELSEWHERE.match(found["to"]) and not found["label"].startswith("!")):
            return found[0]
        label = LINK.sub(link, found["label"]) if "](" in found["label"] else found["label"]
        return _link(found["picture"], label, found["to"], file, page)

    return outside_code(text, lambda piece: LINK.sub(link, piece))


def _link(picture: str, label: str, to: str, file: Path, page: Path) -> str:
    """Return a link to what ``to`` names beside a file, written in a page."""
    path, _, anchor = to.partition("#")
    target = Path(file.parent, path).resolve()
    found = page_of(target)
    if found is not None and not picture:
        own = found == page and anchor
        return f"[{label}]({'' if own else relative(found, page)}{'#' * bool(anchor)}{anchor})"
    if picture or "](" in label:
        return f"{picture}[{label}]({relative(target, page)})"
    if (target / PACKED_FILE).is_file():
        target /= PACKED_FILE
    return download(label, target, page) if target.is_file() else label


def download(label: str, file: Path, page: Path) -> str:
    """Return a link by which a reader of a page downloads a file of the tree."""
    words = " ".join(label.replace("`", "").split())
    return f"{{download}}`{words} <{relative(file, page)}>`"
