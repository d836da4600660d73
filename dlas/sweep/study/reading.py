"""Read study files."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from dlas.bench.store import toml
from dlas.errors import InputError
from dlas.sweep.study.study import Study


def read_study(path: Path, sample: int | None = None) -> Study:
    """Return the study written in a TOML file.

    Parameters
    ----------
    sample : int, optional
        Points to draw, instead of those that the file asks for.

    Raises
    ------
    InputError
        If it is invalid; quotes the line or the value.
    """
    text = toml.read_text(path, "study")
    try:
        return parse_study(text, sample)
    except InputError as error:
        raise InputError(f"{path}: {error}") from None


def parse_study(text: str, sample: int | None = None) -> Study:
    """Return the study written in a TOML text; raises as :func:`read_study`."""
    raw = toml.parse(text)
    if not raw:
        raise InputError("an empty study: it needs at least a name and a table [axes]")
    return Study.of({"name": None, **raw}, sample)


def as_study(study: Study | Mapping[str, Any] | str | os.PathLike[str], sample: int | None = None) -> Study:
    """Return a study that is given as such, as a table with the keys of a study file, or as the file's path.

    Parameters
    ----------
    sample : int, optional
        Points to draw, instead of those that the study asks for.

    Raises
    ------
    InputError
        If it is invalid.
    """
    if isinstance(study, Study):
        return study if sample is None else study.with_sample(sample)
    return Study.of(study, sample) if isinstance(study, Mapping) else read_study(Path(study), sample)
