"""Parts in words: what a part does, and which values its options take."""

from __future__ import annotations

import dataclasses
import inspect
import json
import re
import types
import typing
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

from dlas.sweep.study import parts
from dlas.sweep.study.part_class import PartClass

KINDS = {int: "integer", float: "number", str: "text", bool: "true or false"}
LIMITS = {"gt": "above", "ge": "from", "lt": "below", "le": "up to"}
SECTION = re.compile(r"\n\n(?=[A-Z]\w+\n-+\n)")
ROLE = re.compile(r":\w+:`~?(?:[\w.]*\.)?(\w+)`")
"""A reference to a class or function, of which readers see the last word."""


@dataclass(frozen=True)
class Option:
    """An option of a part.

    Parameters
    ----------
    name : str
    default : str
        As a study file writes it; empty where there is none.
    required : bool
        Whether a study has to give it.
    allowed : str
        The values that it takes, in words.
    meaning : str
        From the docstring of the part's class or a base class; empty where it has none.
    """

    name: str
    default: str
    required: bool
    allowed: str
    meaning: str

    def __str__(self) -> str:
        """Return the option on one line: ``scope = "global" (of "global", "layer")``."""
        value = "required" if self.required else self.default and f"= {self.default}"
        return f"{self.name} {value} ({self.allowed})".replace("  ", " ")


@dataclass(frozen=True)
class Description:
    """A part in words.

    Parameters
    ----------
    axis, name : str
    summary : str
        What it does, in a line.
    text : str
        What else its docstring says, without the options.
    options : tuple of Option
    file : Path
        Where it is defined.
    """

    axis: str
    name: str
    summary: str
    text: str
    options: tuple[Option, ...]
    file: Path


def describe(axis: str, name: str) -> Description:
    """Return the description of a part.

    Raises
    ------
    InputError
        If there is no such part.
    """
    part = parts.find(axis, name)
    summary, _, rest = (inspect.getdoc(part.cls) or "").partition("\n")
    others = [section for section in SECTION.split(f"\n\n{rest.strip()}") if not _lists_options(section)]
    text = "\n\n".join(section.strip() for section in others).strip()
    file = Path(inspect.getfile(part.cls))
    if profile := part.fixed.get("profile"):
        summary, text = profile.title, profile.unsupported or ""
        file = Path(name) if name.endswith(".toml") else parts.PROFILES / f"{name}.toml"
    return Description(axis, name, _plain(summary), _plain(text), tuple(_options(part)), file)


def allowed(hint: object) -> str:
    """Return the values that a type allows: ``number above 0 below 1, or "elbow"``; None is left out."""
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    if origin is Literal:
        return ", ".join(map(_toml, arguments))
    if origin in (typing.Union, types.UnionType):
        return ", or ".join(allowed(kind) for kind in arguments if kind is not type(None))
    if origin is Annotated:
        return " ".join([allowed(arguments[0]), *_bounds(arguments[1:])])
    return KINDS.get(hint, getattr(hint, "__name__", str(hint)))  # type: ignore[call-overload, no-any-return]


def _options(part: PartClass) -> Iterator[Option]:
    hints = typing.get_type_hints(part.cls, include_extras=True)
    meanings = _meanings(part.cls)
    for name, default in part.options().items():
        required = default is dataclasses.MISSING
        shown = "" if required or default is None else _toml(default)
        yield Option(name, shown, required, allowed(hints[name]), meanings.get(name, ""))


def _bounds(metadata: tuple[object, ...]) -> Iterator[str]:
    """Yield the bounds of a number, which pydantic keeps in its fields."""
    bounds = [bound for entry in metadata for bound in getattr(entry, "metadata", [entry])]
    limits = {name: getattr(bound, name) for bound in bounds for name in LIMITS if hasattr(bound, name)}
    if limits.keys() == {"ge", "le"}:
        yield f"{limits['ge']:,} to {limits['le']:,}"
        return
    for name, limit in limits.items():
        yield f"{LIMITS[name]} {limit:,}"


def _meanings(cls: type) -> Mapping[str, str]:
    """Return what the docstrings of a class and its bases say of each option."""
    meanings: dict[str, str] = {}
    for base in reversed(cls.__mro__):
        about = inspect.cleandoc(vars(base).get("__doc__") or "")
        for section in filter(_lists_options, SECTION.split(about)):
            entries = re.split(r"\n(?=\S)", section.strip())[2:]
            for head, _, text in (entry.partition("\n") for entry in entries):
                names = head.partition(" : ")[0].split(", ")
                meanings |= dict.fromkeys(names, _plain(" ".join(text.split())))
    return meanings


def _lists_options(section: str) -> bool:
    return section.strip().startswith("Parameters\n")


def _plain(text: str) -> str:
    """Return a docstring's text without its marks."""
    return ROLE.sub(r"\1", text).replace("``", "")


def _toml(value: object) -> str:
    return json.dumps(value)
