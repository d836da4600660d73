"""A study file, the choices it lists for each layer, and the points they expand to."""

from __future__ import annotations

import itertools
import math
import re
import typing
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, fields, replace
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Annotated, Any

import pydantic

from dlas.errors import InputError, unknown
from dlas.stack import PART_AXES, MeasureSettings
from dlas.store import toml
from dlas.study import parts
from dlas.study.point import Choice, Point, chained

AXES = (*PART_AXES, "batch")
DEFAULTS: dict[str, list[Any]] = {
    "dataset": ["digits"],
    "model": ["cifar_resnet18"],
    "compression": ["none"],
    "algorithm": ["direct"],
    "compiler": ["untuned"],
    "hardware": ["local_cpu"],
    "batch": [1],
}
"""What an axis holds when a study leaves it out."""
MOST_POINTS = 1_000_000


@dataclass(frozen=True)
class Skip:
    """A rule that drops the points matching every pattern it names."""

    patterns: tuple[tuple[str, tuple[Any, ...]], ...]
    reason: str

    def matches(self, point: Point) -> bool:
        """Return whether the rule drops ``point``."""
        return all(
            any(_matches(axis, getattr(point, axis), pattern) for pattern in alternatives)
            for axis, alternatives in self.patterns
        )


@dataclass(frozen=True)
class Limits:
    """What one step may use before it is stopped and its point becomes a row ``timeout`` or ``failed``.

    Parameters
    ----------
    network, tune, build, check, measure : float
        Seconds.
    memory : int
        Bytes of anonymous memory of the step's processes together.
    """

    network: Annotated[float, pydantic.Field(gt=0)] = 7 * 86400.0
    tune: Annotated[float, pydantic.Field(gt=0)] = 2 * 86400.0
    build: Annotated[float, pydantic.Field(gt=0)] = 3600.0
    check: Annotated[float, pydantic.Field(gt=0)] = 1800.0
    measure: Annotated[float, pydantic.Field(gt=0)] = 1800.0
    memory: Annotated[int, pydantic.Field(gt=0)] = 16 * 2**30


@dataclass
class Expansion:
    """How a study's cross product became its points; counts fill as :meth:`Study.points` runs."""

    total: int
    skipped: Counter[str] = field(default_factory=Counter)
    merged: int = 0


@dataclass(frozen=True)
class Study:
    """What to try on each axis, how to measure it, and what to leave out.

    Parameters
    ----------
    name : str
    axes : mapping of str to tuple
        Choices by axis; integers for ``batch``.
    seed : int
    skip : tuple of Skip
    measure : MeasureSettings
    limits : Limits
    """

    name: str
    axes: Mapping[str, tuple[Any, ...]]
    seed: int = 0
    skip: tuple[Skip, ...] = ()
    measure: MeasureSettings = field(default_factory=MeasureSettings)
    limits: Limits = field(default_factory=Limits)

    @classmethod
    def read(cls, path: Path) -> Study:
        """Return the study written in a TOML file.

        Raises
        ------
        InputError
            Whatever is wrong with it, quoting the line or the value.
        """
        text = toml.read_text(path, "study")
        try:
            return cls.parse(text)
        except InputError as error:
            raise InputError(f"{path}: {error}") from None

    @classmethod
    def parse(cls, text: str) -> Study:
        """Return the study written in a TOML text."""
        raw = toml.parse(text)
        if not raw:
            raise InputError("an empty study: it needs at least a name and a table [axes]")
        known = {f.name for f in fields(cls)}
        for key in raw:
            if key not in known:
                raise unknown("key in the study", key, known)
        axes = _axes(raw.get("axes"))
        return cls(
            name=_name(raw.get("name")),
            axes=axes,
            seed=_checked("seed", raw.get("seed", 0), Annotated[int, pydantic.Field(ge=0, lt=2**32)]),
            skip=tuple(_skip(number, rule) for number, rule in enumerate(_list("skip", raw), start=1)),
            measure=_section("measure", raw.get("measure", {}), MeasureSettings),
            limits=_section("limits", raw.get("limits", {}), Limits),
        )

    def expansion(self) -> Expansion:
        """Return the size of the cross product, before anything is skipped or merged."""
        return Expansion(math.prod(len(self.axes[axis]) for axis in AXES))

    def points(self, expansion: Expansion | None = None) -> Iterator[Point]:
        """Yield the points, those that will be compared next to each other.

        Parameters
        ----------
        expansion : Expansion, optional
            Its counts of skipped and merged points are filled in as points are yielded.
        """
        counts = expansion or self.expansion()
        seen: set[bytes] = set()
        order = ("dataset", "model", "compression", "hardware", "batch", "algorithm", "compiler")
        for combination in itertools.product(*(self.axes[axis] for axis in order)):
            point = _collapse(Point(**dict(zip(order, combination, strict=True)), seed=self.seed))
            digest = bytes.fromhex(point.id)
            if digest in seen:
                counts.merged += 1
                continue
            seen.add(digest)
            rule = next((rule for rule in self.skip if rule.matches(point)), None)
            if rule is not None:
                counts.skipped[rule.reason] += 1
                continue
            yield point


def check_size(study: Study) -> None:
    """Refuse a study that expands to nothing or to more than a million points.

    Raises
    ------
    InputError
    """
    expansion = study.expansion()
    if expansion.total > MOST_POINTS:
        sizes = ", ".join(f"{axis} {len(study.axes[axis])}" for axis in AXES)
        raise InputError(
            f"the study expands to {expansion.total:,} points ({sizes}); at most {MOST_POINTS:,}"
        )
    if next(study.points(expansion), None) is None:
        reasons = "; ".join(f"{count} by {reason!r}" for reason, count in expansion.skipped.items())
        raise InputError(f"the study expands to nothing: every point is skipped ({reasons})")


def _collapse(point: Point) -> Point:
    """Replace the algorithm where the compiler brings kernels of its own."""
    if parts.find("compiler", point.compiler.name).cls.own_kernels:
        return replace(point, algorithm=Choice(parts.LIBRARY))
    return point


def _name(name: Any) -> str:
    if not isinstance(name, str) or not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,99}", name):
        raise InputError(f"name = {name!r}: a study needs a name of letters, digits, '_', '-' and '.'")
    return name


def _list(key: str, raw: Mapping[str, Any]) -> list[Any]:
    value = raw.get(key, [])
    if not isinstance(value, list):
        raise InputError(f"{key} = {value!r}: a list is expected (write [[{key}]])")
    return value


def _checked(what: str, value: Any, kind: Any) -> Any:
    """Return ``value`` as ``kind`` accepts it, else the reason why not."""
    try:
        return pydantic.TypeAdapter(kind).validate_python(value, strict=True)
    except pydantic.ValidationError as error:
        raise InputError(f"{what} = {value!r}: {error.errors()[0]['msg']}") from None


def _section(name: str, raw: Any, kind: Any) -> Any:
    """Return a table of settings as its dataclass."""
    if not isinstance(raw, dict):
        raise InputError(f"{name} = {raw!r}: a table is expected (write [{name}])")
    known = {f.name: f for f in fields(kind)}
    for key in raw:
        if key not in known:
            raise unknown(f"setting in [{name}]", key, known)
    hints = typing.get_type_hints(kind, include_extras=True)
    return kind(**{key: _checked(f"[{name}] {key}", value, hints[key]) for key, value in raw.items()})


def _axes(raw: Any) -> dict[str, tuple[Any, ...]]:
    """Return the choices of every axis, defaults filled in."""
    if not isinstance(raw, dict) or not raw:
        raise InputError("an empty study: the table [axes] lists what to try on each layer")
    for axis in raw:
        if axis not in AXES:
            raise unknown("axis", axis, AXES)
    axes: dict[str, tuple[Any, ...]] = {}
    for axis in AXES:
        entries = raw.get(axis, DEFAULTS[axis])
        entries = entries if isinstance(entries, list) else [entries]
        if not entries:
            raise InputError(f"axis {axis!r} is an empty list: leave it out for its default {DEFAULTS[axis]}")
        if axis == "batch":
            batch = Annotated[int, pydantic.Field(ge=1)]
            axes[axis] = tuple(_checked("batch", entry, batch) for entry in entries)
        else:
            axes[axis] = tuple(choice for entry in entries for choice in _choices(axis, entry))
    return axes


def _choices(axis: str, entry: Any) -> Iterator[Choice]:
    """Yield the choices of one entry: a name, or a table whose list options are tried at each value."""
    table = {"name": entry} if isinstance(entry, str) else entry
    if isinstance(table, dict) and set(table) == {"chain"} and axis == "compression":
        links = [list(_choices(axis, link)) for link in _list("chain", table)]
        if not links:
            raise InputError("compression: an empty chain")
        for combination in itertools.product(*links):
            yield chained(combination)
        return
    if not isinstance(table, dict) or not isinstance(table.get("name"), str):
        raise InputError(f"axis {axis!r}: {entry!r} is neither a part's name nor a table with a name")
    name = table["name"]
    found = parts.find(axis, name)
    keys = [key for key in table if key != "name"]
    values = [table[key] if isinstance(table[key], list) else [table[key]] for key in keys]
    if not all(values):
        raise InputError(f"{axis} {name!r}: an option with an empty list")
    for combination in itertools.product(*values):
        options = found.validate(name, dict(zip(keys, combination, strict=True)))
        yield Choice(name, tuple(sorted(options.items())))


def _skip(number: int, rule: Any) -> Skip:
    """Return the skip rule of one [[skip]] table."""
    if not isinstance(rule, dict):
        raise InputError(f"skip rule {number}: {rule!r} is not a table")
    reason = rule.get("reason")
    if not isinstance(reason, str) or not reason.strip():
        raise InputError(f'skip rule {number} has no reason: say why in reason = "..."')
    patterns = {key: value for key, value in rule.items() if key != "reason"}
    for axis in patterns:
        if axis not in AXES:
            raise unknown(f"axis in skip rule {number}", axis, AXES)
    if not patterns:
        raise InputError(f"skip rule {number} ({reason!r}) names no axis, so it would skip everything")
    return Skip(
        tuple((axis, tuple(p) if isinstance(p, list) else (p,)) for axis, p in sorted(patterns.items())),
        reason,
    )


def _matches(axis: str, value: Any, pattern: Any) -> bool:
    """Return whether a choice (or a batch size) is what a skip pattern describes."""
    if not isinstance(value, Choice):
        return bool(value == pattern)
    if isinstance(pattern, str):
        return fnmatchcase(value.name, pattern)
    if not isinstance(pattern, dict) or not fnmatchcase(value.name, pattern.get("name", "*")):
        return False
    wanted = {key: option for key, option in pattern.items() if key != "name"}
    if not wanted:
        return True
    options = {**parts.find(axis, value.name).options(), **dict(value.options)} if not value.chain else {}
    return all(key in options and options[key] == option for key, option in wanted.items())
