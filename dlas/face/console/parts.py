"""``dlas list``: all parts in a few lines each, or one part in full."""

from __future__ import annotations

import itertools
import os
import re
from collections.abc import Iterable, Iterator

from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from dlas.sweep.study.describing import Description, Option, describe
from dlas.sweep.study.outlines import FINDER

WORD = re.compile(r"^[a-z]+")
UNFINISHED = re.compile(r"[^a-z_]+$")
"""What several numbers have in common is no part of a family's name."""


def listing(axes: Iterable[str]) -> Table:
    """Return the parts of some axes: what each does, and its options with their values."""
    table = Table.grid(padding=(0, 2))
    table.add_column(no_wrap=True)
    table.add_column(overflow="fold")
    for number, axis in enumerate(axes):
        if number:
            table.add_row()
        table.add_row(Text(axis, "bold"))
        for names in FINDER.modules(axis):
            part = describe(axis, names[0])
            more = f" and {len(names) - 1} more" if names[1:] else ""
            table.add_row(Text(f"  {names[0]}{more}"), Text(part.summary))
            if more:
                table.add_row("", Text(", ".join(_families(names))))
            if part.options:
                table.add_row("", Text("; ".join(map(str, part.options)), "dim"))
    return table


def in_full(part: Description) -> RenderableType:
    """Return everything about one part."""
    pieces: list[RenderableType] = [
        Text.assemble((part.name, "bold"), f"  {part.axis}"),
        Text(f"  {part.summary}"),
    ]
    if part.text:
        pieces += [Text(), Padding(Text(part.text), (0, 0, 0, 2))]
    if part.options:
        pieces += [Text(), Text("options", "bold"), _options(part.options)]
    pieces += [
        Text(),
        Text.assemble(("in a study  ", "dim"), f"{part.axis} = [{_entry(part)}]"),
        Text.assemble(("defined in  ", "dim"), str(part.file)),
    ]
    return Group(*pieces)


def _families(names: Iterable[str]) -> Iterator[str]:
    """Yield names, those that begin with the same word as one: ``vgg{11,11_bn,13}``."""
    for _, alike in itertools.groupby(sorted(names), key=lambda name: WORD.findall(name)[:1]):
        family = list(alike)
        if len(family) == 1:
            yield family[0]
            continue
        common = UNFINISHED.sub("", os.path.commonprefix(family))  # noqa: RUF071 - these are no paths
        yield f"{common}{{{','.join(name.removeprefix(common) for name in family)}}}"


def _options(options: Iterable[Option]) -> Padding:
    table = Table.grid(padding=(0, 2))
    for _ in range(4):
        table.add_column(overflow="fold")
    table.add_row(*(Text(heading, "dim") for heading in ("option", "default", "values", "meaning")))
    for option in options:
        default = "required" if option.required else option.default
        table.add_row(*map(Text, (option.name, default, option.allowed, option.meaning)))
    return Padding(table, (0, 0, 0, 2), expand=False)


def _entry(part: Description) -> str:
    """Return the part as a study lists it, with the options that it needs and one more."""
    needed = [option for option in part.options if option.required]
    shown = needed or [option for option in part.options if option.default][:1]
    values = "".join(f", {option.name} = {option.default or '...'}" for option in shown)
    return f'{{ name = "{part.name}"{values} }}' if shown else f'"{part.name}"'
