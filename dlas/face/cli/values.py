"""Values as the command line writes them: what it takes for parameters of each type, and makes of it."""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dlas.bench.store import toml
from dlas.errors import InputError

PART = "A part's name, or a table: '{name = \"cifar_resnet18\", width = 0.5}'."
Converter = Callable[[str, Any], Any]
"""Makes a value of what was given for a parameter, whose name is for messages."""


@dataclass(frozen=True)
class Notation:
    """How the command line writes values of some type."""

    type: Any
    """Of what typer gives."""
    convert: Converter | None = None
    """Makes the value of it."""
    note: str = ""
    """How to write it."""
    help: str = ""
    """What all parameters of the type mean."""


def part_of(text: str) -> str | dict[str, Any]:
    """Return a part as an entry of a study file.

    Raises
    ------
    InputError
        If it starts like a table and is not one.
    """
    if not text.startswith("{"):
        return text
    try:
        part: dict[str, Any] = tomllib.loads(f"part = {text}")["part"]
    except tomllib.TOMLDecodeError as error:
        raise InputError(f"{text!r} is not a TOML table: {error}") from None
    return part


def option_of(text: str) -> tuple[str, Any]:
    """Return an option's name and value; a text needs no quotes, which shells remove."""
    key, equals, value = text.partition("=")
    if not equals:
        raise InputError(f"{text!r} is not of the form option=value")
    try:
        return key.strip(), toml.parse(f"value = {value}")["value"]
    except InputError:
        return key.strip(), value


def bounds_of(name: str, texts: Sequence[str]) -> dict[str, float]:
    """Return the most of each quantity in ``latency_s=0.05``, ...

    Raises
    ------
    InputError
        If a text is no bound, or two are for one quantity.
    """
    found: dict[str, float] = {}
    for text in texts:
        quantity, _, most = text.partition("=")
        try:
            value = float(most)
        except ValueError:
            value = -1.0
        if not quantity.strip() or not 0 < value < float("inf"):
            raise InputError(
                f"`{name}={text!r}`: expected a quantity and a positive number, such as latency_s=0.05"
            )
        if quantity.strip() in found:
            raise InputError(f"`{name}={text!r}`: {quantity.strip()} has another bound already")
        found[quantity.strip()] = value
    return found


def numbers_of(name: str, text: str) -> tuple[int, ...]:
    """Return the whole numbers in ``1,8``.

    Raises
    ------
    InputError
        If they are none.
    """
    try:
        return tuple(int(number) for number in text.split(","))
    except ValueError:
        raise InputError(f"`{name}={text!r}`: expected whole numbers, such as 1,8 or 160,192,224") from None


PATH = Notation(Path)
ONE_PART = Notation(str, lambda _, text: part_of(text), PART)
FOLDERS = Notation(list[Path], help="Folders that `dlas run --out` wrote.")
TEXTS = Notation(list[str])
NUMBERS = Notation(str, numbers_of, "Numbers with commas between them.")
NOTATIONS: Mapping[str, Notation] = {
    "str": Notation(str),
    "int": Notation(int),
    "float": Notation(float),
    "bool": Notation(bool),
    "Path": PATH,
    "os.PathLike[str] | str": PATH,
    "Folders": FOLDERS,
    "Folders | pd.DataFrame": FOLDERS,
    "Iterable[str | os.PathLike[str]] | os.PathLike[str] | str": FOLDERS,
    "Iterable[str | os.PathLike[str]]": FOLDERS,
    "Sequence[str | os.PathLike[str]]": Notation(list[Path]),
    "Sequence[str]": TEXTS,
    "Sequence[str] | str": TEXTS,
    "Collection[str] | str": TEXTS,
    "Sequence[int]": NUMBERS,
    "Sequence[int] | int": NUMBERS,
    "Mapping[str, float]": Notation(list[str], bounds_of),
    "Mapping[str, Any]": Notation(list[str], lambda _, texts: dict(map(option_of, texts))),
    "Network": ONE_PART,
    "Mapping[str, Any] | str": ONE_PART,
    "Sequence[str | Mapping[str, Any]]": Notation(
        list[str], lambda _, texts: tuple(map(part_of, texts)), PART
    ),
}
"""By the annotations of parameters, without None and with their members sorted."""
