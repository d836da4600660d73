"""The fenced blocks of the documentation's pages, and how they are run or parsed.

A ``shell`` block is run line by line, a ``python`` block as a script; a block that starts with a file's name
in a comment is written to that file.  A ``text`` block shows what the block before it printed.  A comment on
the line above a block says otherwise::

    <!-- not run: hardware: a Raspberry Pi -->
    <!-- recorded: 2026-11-28, AMD EPYC, 2 cores; of 1f0c24de -->

The first keeps a block from being run, with its reason, one of :data:`REASONS`; it is parsed all the same.
The second stands above a ``text`` block that ``python -m docs.run`` wrote, and names what was run before it.
"""

from __future__ import annotations

import hashlib
import re
import textwrap
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from docs.building.places import ROOT, is_generated

PAGES = (
    ROOT / "README.md",
    ROOT / "CONTRIBUTING.md",
    *(page for page in sorted((ROOT / "docs").rglob("*.md")) if not is_generated(page)),
)
"""What somebody wrote; the site has pages that are made from the source beside them."""
RUN = ("shell", "python", "toml")
"""Languages of blocks that are run, or parsed."""
REASONS = ("hardware", "data", "hours")
"""Why a block may not be run: a device that is not here, files of the reader's own, or a long measurement."""

_BLOCK = re.compile(
    r"^(?P<indent> *)```(?P<language>\w*)\n(?P<text>.*?)^(?P=indent)```$", re.MULTILINE | re.DOTALL
)
_NOTE = re.compile(r" *<!-- (not run|recorded): ((?:(?!-->).)*?) -->\n\Z", re.DOTALL)
_FILE = re.compile(r"# ([\w./-]+\.(?:toml|py))\n")


@dataclass(frozen=True)
class Block:
    """A fenced block of a page."""

    language: str
    text: str
    line: int
    """The line of its fence, from 1."""
    span: tuple[int, int]
    """Where it begins and ends in the page, with the comment above it."""
    reason: str | None
    """Why it is not run, if its comment says so."""
    recorded: str | None
    """When, where and of what it was recorded, if its comment says so."""

    @property
    def file(self) -> str | None:
        """The file that the block is, if its first line names one."""
        found = _FILE.match(self.text)
        return found[1] if found else None

    @property
    def runs(self) -> bool:
        """Whether it is run: a part of a study that names no file is only parsed."""
        fragment = self.language == "toml" and self.file is None
        return self.language in RUN and self.reason is None and not fragment


def blocks(page: str) -> Iterator[Block]:
    """Yield the blocks of a page's text in order."""
    for found in _BLOCK.finditer(page):
        note = _NOTE.search(page, 0, found.start())
        said = {note[1]: note[2]} if note else {}
        yield Block(
            found["language"],
            textwrap.dedent(found["text"]),
            page.count("\n", 0, found.start()) + 1,
            ((note or found).start(), found.end()),
            said.get("not run"),
            said.get("recorded"),
        )


def digest(run: Iterable[Block]) -> str:
    """Return a name for what was run before an output: eight hexadecimal digits."""
    return hashlib.sha256("\0".join(block.text for block in run).encode()).hexdigest()[:8]
