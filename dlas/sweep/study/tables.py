"""The tables of a study file, and the values that they stand for."""

from __future__ import annotations

import os
import typing
from collections.abc import Mapping
from dataclasses import fields
from typing import Annotated, Any, TypeVar

import pydantic
from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, StringConstraints

from dlas.errors import InputError, unknown
from dlas.stack import TASKS, MeasureSettings
from dlas.sweep.study import parts
from dlas.sweep.study.axes import AXES, DEFAULTS
from dlas.sweep.study.entries import AxisEntry, ChainEntry, PartEntry, PlainEntry, Values
from dlas.sweep.study.limits import Limits
from dlas.sweep.study.sampling import Sample, check_drawable
from dlas.sweep.study.skipping import Skip

SettingsT = TypeVar("SettingsT", MeasureSettings, Limits)
STRICT = ConfigDict(extra="forbid", strict=True)


def plain(value: Any) -> Any:
    """Return what was written in Python as TOML would hold it.

    Sequences become lists, paths become texts, and a key whose value is None is left out.
    """
    if isinstance(value, Mapping):
        return {key: plain(item) for key, item in value.items() if item is not None}
    if isinstance(value, list | tuple | range):
        return [plain(item) for item in value]
    return os.fspath(value) if isinstance(value, os.PathLike) else value


def checked(written: Mapping[str, Any]) -> dict[str, Any]:
    """Return the values of the fields of a :class:`dlas.sweep.study.study.Study`.

    Raises
    ------
    InputError
        If anything is invalid; quotes the value.
    """
    table = _validated(StudyTable, written)
    axes = {axis: Values(tuple(_entry(axis, entry) for entry in entries)) for axis, entries in table.axes}
    sample = table.sample.value() if table.sample else None
    check_drawable(axes, sample)
    values = {
        "axes": axes,
        "seed": table.seed,
        "sample": sample,
        "skip": tuple(_skip(number, rule) for number, rule in enumerate(table.skip, start=1)),
        "measure": _settings(MeasureSettings, "measure", table.measure),
        "limits": _settings(Limits, "limits", table.limits),
    }
    if table.name is None:  # last: it is the least of what may be wrong
        raise InputError('the study has no name: write name = "..." above its tables')
    return {"name": table.name, **values}


def _entry_list(written: Any) -> list[Any]:
    """Return a list as it is, and anything else as a list of one."""
    return written if isinstance(written, list) else [written]


Entries = Annotated[list[Any], BeforeValidator(_entry_list), Field(min_length=1)]
Batches = Annotated[list[Annotated[int, Field(ge=1)]], BeforeValidator(_entry_list), Field(min_length=1)]


class AxesTable(BaseModel):
    """The entries of each axis; a missing axis has its default."""

    model_config = STRICT

    dataset: Entries = DEFAULTS["dataset"]
    model: Entries = DEFAULTS["model"]
    compression: Entries = DEFAULTS["compression"]
    algorithm: Entries = DEFAULTS["algorithm"]
    compiler: Entries = DEFAULTS["compiler"]
    hardware: Entries = DEFAULTS["hardware"]
    batch: Batches = DEFAULTS["batch"]
    task: Entries = DEFAULTS["task"]

    @pydantic.model_validator(mode="after")
    def _names_an_axis(self) -> AxesTable:
        if not self.model_fields_set:
            raise ValueError("no axis is named")
        return self


class SkipTable(BaseModel):
    """A rule of a study: patterns by axis, each one or a list of alternatives, and the reason."""

    model_config = STRICT

    dataset: Any = None
    model: Any = None
    compression: Any = None
    algorithm: Any = None
    compiler: Any = None
    hardware: Any = None
    batch: Any = None
    task: Any = None
    reason: Annotated[str, StringConstraints(pattern=r"\S")]

    def patterns(self) -> tuple[tuple[str, tuple[Any, ...]], ...]:
        """Return the alternatives of each axis that the rule names."""
        named = sorted(self.model_fields_set - {"reason"})
        return tuple((axis, tuple(_entry_list(getattr(self, axis)))) for axis in named)


class SampleTable(BaseModel):
    """How many points to draw, and on which axes; all of them by default."""

    model_config = STRICT

    points: Annotated[int, Field(ge=1)] | None = None
    axes: Annotated[list[str], BeforeValidator(_entry_list), Field(min_length=1)] = list(AXES)

    def value(self) -> Sample:
        """Return the sample, which needs a number of points and axes that there are."""
        for axis in self.axes:
            if axis not in AXES:
                raise unknown("axis in [sample] axes", axis, AXES)
        if self.points is None:
            raise InputError("[sample] does not say how many points to draw: write points = 100")
        return Sample(self.points, tuple(axis for axis in AXES if axis in self.axes))


class StudyTable(BaseModel):
    """A study file."""

    model_config = STRICT

    name: Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9][A-Za-z0-9_.-]{0,99}$")] | None
    axes: AxesTable
    seed: Annotated[int, Field(ge=0, lt=2**32)] = 0
    sample: SampleTable | None = None
    skip: list[SkipTable] = []
    measure: dict[str, Any] = {}
    limits: dict[str, Any] = {}


KEYS = tuple(StudyTable.model_fields)


class ChainTable(BaseModel):
    """Compression techniques in order."""

    model_config = STRICT

    chain: Annotated[list[Any], Field(min_length=1)]


EXPECTED = {
    "name": "name = {value!r}: a study needs a name of letters, digits, '_', '-' and '.'",
    "axes": "an empty study: the table [axes] lists what to try on each layer",
    "skip": "skip = {value!r}: a list is expected (write [[skip]])",
    "skip *": "skip rule {number}: {value!r} is not a table",
    "skip * reason": 'skip rule {number} has no reason: say why in reason = "..."',
    "sample": "sample = {value!r}: a table is expected (write [sample])",
    "sample points": "[sample] points = {value!r}: the number of points to draw, a whole number above 0",
    "sample axes": "[sample] axes is an empty list: leave it out to draw all axes",
    "measure": "measure = {value!r}: a table is expected (write [measure])",
    "limits": "limits = {value!r}: a table is expected (write [limits])",
    "chain": "compression: chain = {value!r}: a list of techniques is expected, and an empty chain has none",
}
"""Messages for wrong values by their place in a study, clearer than pydantic's own; * is a number."""
ModelT = TypeVar("ModelT", bound=BaseModel)


def _validated(table: type[ModelT], raw: Any, *place: str) -> ModelT:
    """Return the table at ``place`` in the study as its model.

    Raises
    ------
    InputError
        Quotes the value, says what was expected, and lists valid names if one is unknown.
    """
    try:
        return table.model_validate(raw)
    except pydantic.ValidationError as error:
        problems = error.errors()
    unknown_first = sorted(problems, key=lambda problem: problem["type"] != "extra_forbidden")
    where = (*place, *unknown_first[0]["loc"])
    if unknown_first[0]["type"] == "extra_forbidden":
        raise _unknown_key(where, table)
    raise InputError(_wrong_value(where, unknown_first[0]["input"], unknown_first[0]["msg"]))


def _unknown_key(where: tuple[int | str, ...], table: type[BaseModel]) -> InputError:
    """Return the error for a key that its table does not have."""
    *above, key = where
    match above:
        case []:
            return unknown("key in the study", str(key), table.model_fields)
        case ["axes"]:
            return unknown("axis", str(key), AXES)
        case ["skip", int(index)]:
            return unknown(f"axis in skip rule {index + 1}", str(key), AXES)
        case ["sample"]:
            return unknown("setting in [sample]", str(key), SampleTable.model_fields)
        case _:
            return unknown(f"setting in [{above[0]}]", str(key), table.model_fields)


def _wrong_value(where: tuple[int | str, ...], value: Any, problem: str) -> str:
    """Return the message for a value that its field refuses."""
    pattern = " ".join("*" if isinstance(step, int) else step for step in where)
    if pattern in EXPECTED:
        number = next((step + 1 for step in where if isinstance(step, int)), None)
        return EXPECTED[pattern].format(value=value, number=number)
    match where:
        case ("axes", str(axis)):
            return f"axis {axis!r} is an empty list: leave it out for its default {DEFAULTS[axis]}"
        case ("axes", str(axis), _):
            return f"{axis} = {value!r}: {problem}"
        case (str(section), str(key)):
            return f"[{section}] {key} = {value!r}: {problem}"
        case _:
            return f"{where[0]} = {value!r}: {problem}"


def _settings(kind: type[SettingsT], section: str, raw: dict[str, Any]) -> SettingsT:
    """Return a table of settings as their dataclass, each value checked by its field's type."""
    hints = typing.get_type_hints(kind, include_extras=True)
    columns: dict[str, Any] = {field.name: (hints[field.name], field.default) for field in fields(kind)}
    table: type[BaseModel] = pydantic.create_model(kind.__name__, __config__=STRICT, **columns)
    return kind(**_validated(table, raw, section).model_dump(exclude_unset=True))


def _skip(number: int, rule: SkipTable) -> Skip:
    """Return a skip rule, which must name an axis."""
    if not rule.patterns():
        raise InputError(f"skip rule {number} ({rule.reason!r}) names no axis, so it would skip everything")
    return Skip(rule.patterns(), rule.reason)


def _entry(axis: str, entry: Any) -> AxisEntry:
    """Return an entry of an axis: a plain value, a part with values of its options, or a chain of those."""
    if axis == "task" and entry not in TASKS:
        raise unknown("task", str(entry), TASKS)
    if axis in ("batch", "task"):
        return PlainEntry(entry)
    if axis == "compression" and isinstance(entry, dict) and set(entry) == {"chain"}:
        return ChainEntry(tuple(_listed(axis, link) for link in _validated(ChainTable, entry).chain))
    return _listed(axis, entry)


def _listed(axis: str, entry: Any) -> PartEntry:
    """Return the part of an entry, a name or a table, with the values of its options."""
    table = {"name": entry} if isinstance(entry, str) else entry
    if not isinstance(table, dict) or not isinstance(table.get("name"), str):
        raise InputError(f"axis {axis!r}: {entry!r} is neither a part's name nor a table with a name")
    name = table["name"]
    options = {key: tuple(_entry_list(value)) for key, value in table.items() if key != "name"}
    parts.find(axis, name)  # report an unknown part before an empty list
    if not all(options.values()):
        raise InputError(f"{axis} {name!r}: an option with an empty list")
    return PartEntry.checked(axis, name, options)
