"""Parts in words: what a part does, and which values its options take."""

from __future__ import annotations

import dataclasses
import inspect
import json
import types
import typing
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

from dlas.sweep.study import parts
from dlas.sweep.study.docstrings import meanings, plain, without_parameters
from dlas.sweep.study.outlines import FINDER, class_meanings, file_of
from dlas.sweep.study.parts import Finder, PartClass

KINDS = {int: "integer", float: "number", str: "text", bool: "true or false"}
LIMITS = {"gt": "above", "ge": "from", "lt": "below", "le": "up to"}


@dataclass(frozen=True)
class Option:
    """An option of a part."""

    name: str
    default: str
    """As a study file writes it; empty where there is none."""
    required: bool
    """Whether a study has to give it."""
    allowed: str
    """The values that it takes, in words."""
    meaning: str
    """From the docstring of the part's class or a base class; empty where it has none."""

    def __str__(self) -> str:
        """Return the option on one line: ``scope = "global" (of "global", "layer")``."""
        value = "required" if self.required else self.default and f"= {self.default}"
        return f"{self.name} {value} ({self.allowed})".replace("  ", " ")


@dataclass(frozen=True)
class Description:
    """A part in words."""

    axis: str
    name: str
    summary: str
    """What it does, in a line."""
    text: str
    """What else its docstring says, without the options."""
    options: tuple[Option, ...]
    file: Path
    """Where it is defined."""


def describe(axis: str, name: str, finder: Finder = FINDER) -> Description:
    """Return the description of a part.

    Parameters
    ----------
    finder : Finder
        By default one that does not import what parts need.

    Raises
    ------
    InputError
        If there is no such part.
    """
    part = finder.find(axis, name)
    docstring = inspect.getdoc(part.cls) or ""
    summary, text = docstring.partition("\n")[0], without_parameters(docstring)
    file = file_of(part.cls)
    if profile := part.fixed.get("profile"):
        summary, text = profile.title, profile.unsupported or ""
        file = Path(name) if name.endswith(".toml") else parts.PROFILES / f"{name}.toml"
    return Description(axis, name, plain(summary), plain(text), tuple(_options(part)), file)


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
    """Return what a class and its bases say of each option, in their docstrings or behind the fields."""
    found: dict[str, str] = {}
    for base in reversed(cls.__mro__):
        found |= meanings(vars(base).get("__doc__") or "") | class_meanings(base)
    return {name: plain(text) for name, text in found.items()}


def _toml(value: object) -> str:
    return json.dumps(value)
