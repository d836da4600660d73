"""What a loop was asked for, and how far it is: a file in its folder, by which the same command goes on."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Annotated, Any, Literal, Self, TypeVar

import pydantic

from dlas.bench.store import toml
from dlas.bench.store.records import Strict, read_model
from dlas.bench.store.replacing import make_folder, replacing
from dlas.errors import InputError

MOST_BYTES = 64 << 20
LONGEST = 300
"""Characters of an option that a message quotes."""


class RunRequest(Strict):
    """What a loop was asked for; a folder goes on only with the same."""

    @classmethod
    def checked(cls, **options: object) -> Self:
        """Return what was asked for.

        Raises
        ------
        InputError
            If an option is out of range.
        """
        try:
            return cls.model_validate(options)
        except pydantic.ValidationError as error:
            problem = error.errors()[0]
            raise InputError(f"`{problem['loc'][0]}={problem['input']!r}`: {problem['msg']}") from None

    def options(self) -> dict[str, str]:
        """Return the options of the command, by name."""
        found = {}
        for name, value in self:
            several = value if isinstance(value, list) else [] if value is None else [value]
            if several:
                found[name] = " ".join(f"`{name}={typed(each)}`" for each in several)
        return found

    def check_goes_on(self, before: RunRequest, folder: Path, what: str = "an unfinished run") -> None:
        """Refuse to go on with what was asked for differently.

        Raises
        ------
        InputError
            It has the options that differ.
        """
        there, here = before.options(), self.options()
        differing = [name for name in there | here if there.get(name) != here.get(name)]
        if not differing:
            return
        told = [
            " ".join(
                shown if len(shown := own.get(name, f"no `{name}=`")) <= LONGEST else f"another {name}"
                for name in differing
            )
            for own in (there, here)
        ]
        raise InputError(
            f"{str(folder)!r} holds {what} with {told[0]}, and this one has {told[1]}: give the same options "
            "to go on, or another folder"
        )


class RunRecord(Strict):
    """How far a loop is."""

    schema_version: Literal[1] = 1
    """Version of this list of fields."""
    spent_s: Annotated[float, pydantic.Field(ge=0)] = 0.0
    """Seconds so far."""
    finished: bool = False


RecordT = TypeVar("RecordT", bound=RunRecord)


def read_record(path: Path, model: type[RecordT]) -> RecordT:
    """Return the record in a file, which may come from elsewhere.

    Raises
    ------
    InputError
        If it is damaged.
    """
    return read_model(path, model, MOST_BYTES)


def write_record(path: Path, record: RunRecord) -> None:
    """Write a record in one step.

    Raises
    ------
    InputError
        If the folder cannot be written to.
    """
    make_folder(path.parent, "folder")
    try:
        with replacing(path) as partial:
            partial.write_text(record.model_dump_json(indent=1) + "\n", encoding="utf-8")
    except OSError as error:
        raise InputError(f"cannot write {str(path)!r}: {error.strerror}") from None


def typed(value: Any) -> str:
    """Return a value as a shell reads it: a text as it is, anything else as TOML."""
    return shlex.quote(value if isinstance(value, str) else toml.on_one_line(value))
