"""Records in JSON files, which may come from elsewhere: read within bounds, and checked strictly."""

from __future__ import annotations

from pathlib import Path
from typing import TypeVar

import pydantic

from dlas.errors import InputError, one_line


class Strict(pydantic.BaseModel):
    """A record of a file: no other keys, no conversions, no infinite numbers."""

    model_config = pydantic.ConfigDict(extra="forbid", strict=True, frozen=True, allow_inf_nan=False)


ModelT = TypeVar("ModelT", bound=pydantic.BaseModel)


def read_model(path: Path, model: type[ModelT], most_bytes: int) -> ModelT:
    """Return the record in a file.

    Parameters
    ----------
    most_bytes : int
        Of the file.

    Raises
    ------
    InputError
        If it cannot be read, is too large, or is no such record.
    """
    try:
        with path.open("rb") as file:
            text = file.read(most_bytes + 1)
    except OSError as error:
        raise InputError(f"cannot read {str(path)!r}: {error.strerror}") from None
    if len(text) > most_bytes:
        raise InputError(f"{path} has over {most_bytes:,} bytes")
    return model_in(text, path, model)


def model_in(text: bytes, path: Path, model: type[ModelT]) -> ModelT:
    """Return the record in a text that was read from a file.

    Raises
    ------
    InputError
        If it is none; it names the file and the first place that is wrong.
    """
    try:
        return model.model_validate_json(text)
    except pydantic.ValidationError as error:
        problem = error.errors()[0]
        place = one_line(".".join(map(str, problem["loc"])))
        raise InputError(f"{path}: {place or 'the file'}: {problem['msg']}") from None
