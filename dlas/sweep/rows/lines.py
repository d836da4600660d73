"""Lines of a results file, held against the types of a row's fields.

A line is decoded to what the table of rows needs: what many rows share, such as the device, is read once, and
no objects are made of what only a whole row has.
"""

from __future__ import annotations

import collections.abc
import dataclasses
import functools
import json
import math
import types
import typing
from collections.abc import Sequence
from typing import Annotated, Any, Literal, TypedDict

import msgspec

from dlas.bench.store import finite
from dlas.stack import PART_AXES
from dlas.sweep.rows.machines import with_core_caches
from dlas.sweep.rows.older import FLAG, FLAG_REASON, NEWEST, as_part, renewed, replaced

SHARED = (*PART_AXES, "device", "environment")
"""Fields of which a sweep's rows have few different values."""
SAMPLED = ("latency_s", "sentinel_s")
"""Fields that hold samples, which are no less than zero."""
WHOLE = (
    Annotated[int, msgspec.Meta(ge=-(2**63), le=2**63 - 1)]
    | Annotated[float, msgspec.Meta(ge=-(2.0**63), lt=2.0**63)]
)
"""A whole number that a column holds; older rows have some as fractions."""
TOLD_OTHERWISE = ("status", "schema", "resident_bytes", "peak_memory_bytes", "reached", "expected_speedup")
"""Fields that :func:`dlas.sweep.rows.older.replaced` reads, besides the flag."""
KEPT = 1 << 14
"""Most different values of what rows share that are kept while rows are read."""


class Damaged(ValueError):
    """A line is no row; the message says what is wrong with it."""


class _Part(TypedDict, total=False):
    """What every part in a row has; the rest are its options."""

    name: str | None
    chain: list[dict[str, Any]] | None


class LineReader:
    """Reads lines as rows of one class.

    Parameters
    ----------
    row : type
        A dataclass with the fields of a row.
    statuses : sequence of str
        The statuses that a row may have.
    """

    def __init__(self, row: type, statuses: Sequence[str]) -> None:
        hints = typing.get_type_hints(row)
        required = [
            field.name
            for field in dataclasses.fields(row)
            if field.default is dataclasses.MISSING and field.default_factory is dataclasses.MISSING
        ]
        kinds: dict[str, Any] = {name: _tolerant(hint) for name, hint in hints.items()}
        kinds |= dict.fromkeys(SAMPLED, list[Annotated[float, msgspec.Meta(ge=0)]])
        kinds |= {
            "status": Literal[tuple(statuses)],
            "id": str,
            "layers": types.GenericAlias(list, (_layer(hints["layers"]) | None,)),
        }
        kinds |= dict.fromkeys(PART_AXES, _Part | str)
        self._shared = {name: kinds[name] for name in SHARED}
        kinds |= {FLAG: bool, FLAG_REASON: str}
        order = [*required, *(name for name in kinds if name not in required)]

        plain = {field.name: field.default for field in dataclasses.fields(row)}
        plain = {name: value if isinstance(value, str) else None for name, value in plain.items()}
        whole = {name: (kinds[name] | None, plain.get(name)) for name in order} | {
            name: (kinds[name],) for name in required
        }
        line = whole | {name: (msgspec.Raw, msgspec.Raw(b"")) for name in SHARED}
        line |= {name: (msgspec.Raw,) for name in PART_AXES}
        self._line = msgspec.defstruct("Line", [(name, *line[name]) for name in order], gc=False)
        self._whole = msgspec.defstruct("Whole", [(name, *whole[name]) for name in order], gc=False)
        self._decoder = msgspec.json.Decoder(self._line)
        self._content = functools.lru_cache(KEPT)(self._read_content)

    def line(self, line: bytes) -> Any:
        """Return what the table needs of a line as attributes: None for what the line does not have.

        The ``layers`` have attributes, too; mappings have the keys that are described, those of
        :data:`SHARED` all keys.

        Raises
        ------
        Damaged
            If it is not JSON, or a field is missing or has a wrong type.
        """
        try:
            _check_text(line)
            found: Any = self._decoder.decode(line)
            for name in SHARED:
                setattr(found, name, self._content(name, bytes(getattr(found, name))))
        except (ValueError, RecursionError):
            raw = self._checked(line)
            found = msgspec.convert(raw, self._whole)
            for name in SHARED:
                setattr(found, name, raw.get(name))
        if (found.schema or 1) < NEWEST:
            told = {name: getattr(found, name) for name in (FLAG, FLAG_REASON, *TOLD_OTHERWISE)}
            for name, value in replaced(told).items():
                setattr(found, name, value)
        return found

    def content(self, line: bytes) -> dict[str, Any]:
        """Return all of a line as rows of this version have it; raises as :meth:`line`."""
        try:
            _check_text(line)
            found = self._decoder.decode(line)
            shared = {name: self._content(name, bytes(getattr(found, name))) for name in SHARED}
        except (ValueError, RecursionError):
            return self._checked(line)
        return renewed(_all_of(line) | shared)

    def _read_content(self, name: str, content: bytes) -> dict[str, Any] | None:
        if not content:
            return None
        raw = _loaded(content)
        kind = self._shared[name] if name in PART_AXES else self._shared[name] | None
        self._check(raw, kind, f"$.{name}")
        if name in PART_AXES:
            return as_part(raw)
        return with_core_caches(raw) if name == "device" and raw else raw

    def _checked(self, line: bytes) -> dict[str, Any]:
        raw = _loaded(line)
        self._check(raw, self._whole, "$")
        return renewed(raw)

    @staticmethod
    def _check(raw: object, kind: Any, place: str) -> None:
        try:
            msgspec.convert(raw, kind)
        except (msgspec.MsgspecError, OverflowError, UnicodeEncodeError) as error:
            said, _, at = str(error).partition(" - at ")
            where = (place + at.strip("`").removeprefix("$")).removeprefix("$").removeprefix(".")
            raise Damaged(f"{where}: {said}" if where else said) from None


def _check_text(line: bytes) -> None:
    """Refuse what is no text in UTF-8, also where no field is: a decoder of some fields skips that.

    Raises
    ------
    ValueError
    """
    if not line.isascii():
        line.decode()


def _all_of(line: bytes) -> dict[str, Any]:
    """Return all of a line whose fields have their types; what is no field may hold numbers that are none."""
    try:
        found: dict[str, Any] = msgspec.json.decode(line)
    except ValueError:
        found = json.loads(
            line,
            parse_constant=lambda _: None,
            parse_float=lambda text: float(text) if _finite(text) else None,
            parse_int=lambda text: int(text) if _finite(text) else None,  # Python reads few digits
        )
    return found


def _finite(text: str) -> bool:
    return math.isfinite(float(text))


def _loaded(line: bytes) -> Any:
    """Return JSON whose numbers are finite; texts may hold half a character."""
    try:
        return finite.loads(line)
    except RecursionError:
        raise Damaged("it is nested too deeply") from None
    except ValueError as error:
        raise Damaged(str(error)) from None


def _layer(layers: Any) -> Any:
    """Return the class of a line's layers: attributes, which take a third of a mapping's time."""
    (layer,) = typing.get_args(layers)
    fields = typing.get_type_hints(layer).items()
    return msgspec.defstruct(
        "Layer", [(name, _tolerant(hint) | None, None) for name, hint in fields], gc=False
    )


def _tolerant(hint: Any) -> Any:
    """Return a type that also holds what older rows have: null in a mapping, and fractions."""
    if hint is int:
        return WHOLE
    if typing.is_typeddict(hint):
        fields = {name: _tolerant(each) | None for name, each in typing.get_type_hints(hint).items()}
        return TypedDict(hint.__name__, fields, total=False)  # type: ignore[operator]  # made of another
    origin, inner = typing.get_origin(hint), typing.get_args(hint)
    if origin in (types.UnionType, typing.Union):
        return functools.reduce(lambda a, b: a | b, map(_tolerant, inner))
    if origin in (list, collections.abc.Sequence):
        return types.GenericAlias(list, (_tolerant(inner[0]) | None,))
    if origin in (dict, collections.abc.Mapping):
        kept = Any if inner[1] is Any else _tolerant(inner[1]) | None
        return types.GenericAlias(dict, (inner[0], kept))
    return hint
