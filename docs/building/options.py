"""The reference of options: all parts of every axis, as ``dlas list`` knows them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from pathlib import Path

from dlas.sweep.study.describing import Description, Option, describe
from dlas.sweep.study.outlines import FINDER
from dlas.sweep.study.parts import HOMES
from docs.building.commands import cell
from docs.building.places import DOCS

PAGE = DOCS / "reference/options.md"
ABOVE = """\
# Parts and their options

All parts of each axis, with their options as a study file writes them. `dlas list AXIS` prints the same,
`dlas list PART` one part in full. What parts are for, and how they go together, is in [parts](parts.md).
"""
UNDERLINED = re.compile(r"^(\w[\w ]*)\n-{3,}$\n", re.MULTILINE)
"""The head of a section of a docstring."""
HEAD = ("| option | default | values | meaning |", "|---|---|---|---|")


def pages() -> Iterator[tuple[Path, str]]:
    """Yield the page and its text."""
    sections = (_axis(axis) for axis in HOMES)
    yield PAGE, "\n".join([ABOVE, *sections])


def _axis(axis: str) -> str:
    """Return the parts of an axis."""
    parts = (_part(describe(axis, names[0]), names) for names in FINDER.modules(axis))
    return "\n\n".join([f"## {axis.capitalize()}", *parts]) + "\n"


def _part(part: Description, names: Iterable[str]) -> str:
    """Return a part, or several that one file defines: what it does, and its options."""
    first, *others = names
    pieces = [f"### `{first}`" + (f" and {len(others)} more" if others else ""), part.summary]
    if part.text:
        pieces.append(UNDERLINED.sub(r"**\1.**\n", part.text))
    if others:
        pieces.append(f"Also {', '.join(f'`{name}`' for name in others)}.")
    if part.options:
        pieces.append("\n".join([*HEAD, *map(_option, part.options)]))
    return "\n\n".join(pieces)


def _option(option: Option) -> str:
    """Return an option as a line of a table."""
    default = "required" if option.required else f"`{option.default}`" if option.default else ""
    line = f"| `{option.name}` | {default} | {cell(option.allowed)} | {cell(option.meaning)} |"
    return line.replace("|  |", "| |")
