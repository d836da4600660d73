"""What docstrings say of parameters and fields, in words for people who read a terminal."""

from __future__ import annotations

import ast
import inspect
import re
from collections.abc import Iterator

SECTION = re.compile(r"\n\n(?=[A-Z]\w+\n-+\n)")
ROLE = re.compile(r":\w+:`~?(?:[\w.]*\.)?(\w+)`")
"""A reference to a class or function, of which readers see the last word."""


def plain(text: str) -> str:
    """Return a docstring's text without its marks."""
    return ROLE.sub(r"\1", text).replace("``", "")


def without_parameters(docstring: str) -> str:
    """Return what a docstring says behind its first line, without the list of parameters."""
    _, _, rest = docstring.partition("\n")
    others = [section for section in SECTION.split(f"\n\n{rest.strip()}") if not _lists(section)]
    return "\n\n".join(section.strip() for section in others).strip()


def meanings(docstring: str) -> dict[str, str]:
    """Return what a docstring's list of parameters says of each, on one line and with its marks."""
    found: dict[str, str] = {}
    for section in filter(_lists, SECTION.split(inspect.cleandoc(docstring))):
        entries = re.split(r"\n(?=\S)", section.strip())[2:]
        for head, _, text in (entry.partition("\n") for entry in entries):
            found |= dict.fromkeys(head.partition(" : ")[0].split(", "), " ".join(text.split()))
    return found


def behind_fields(definition: ast.ClassDef) -> Iterator[tuple[str, str]]:
    """Yield the fields of a class that have a docstring behind them, each with this on one line."""
    for field, text in zip(definition.body, definition.body[1:], strict=False):
        match field, text:
            case ast.AnnAssign(target=ast.Name(id=name)), ast.Expr(value=ast.Constant(value=str(said))):
                yield name, " ".join(said.split())


def _lists(section: str) -> bool:
    return section.strip().startswith("Parameters\n")
