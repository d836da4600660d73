"""Fitted predictors that others are made from: folders of ``dlas fit``, read without executing anything."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dlas.errors import InputError
from dlas.prediction.predictors.fitted.folders import FILE, check_files, read_text


@dataclass(frozen=True)
class Base:
    """What was fitted to the rows of one setting."""

    part: str
    """The predictor's name."""
    target: str
    machine: str
    columns: tuple[str, ...]
    folder: Path
    """Of its arrays."""

    def check_quantity(self, name: str, quantity: str) -> None:
        """Refuse to stand for a quantity of another unit.

        Parameters
        ----------
        name : str
            What the user calls the base.
        quantity : str
            A column of rows; empty where nobody tells.

        Raises
        ------
        InputError
        """
        if quantity and self.target.rpartition("_")[2] != quantity.rpartition("_")[2]:
            raise InputError(f"base {name!r} predicts {self.target}, and {quantity} is to be predicted")


def read_bases(folder: str) -> list[Base]:
    """Return what a predictor's folder holds, one for each setting.

    Raises
    ------
    InputError
        If it is none, or is damaged.
    """
    path = Path(folder).expanduser()
    text = read_text(path, f"base {folder!r}")
    try:
        content = json.loads(text)
        found = [
            Base(
                part=_text(content["part"]),
                target=_text(content["target"]),
                machine=_text(setting["machine"]),
                columns=tuple(map(_text, setting["columns"])),
                folder=_checked(path, setting),
            )
            for setting in content["settings"]
        ]
    except (KeyError, TypeError, ValueError, AttributeError, RecursionError) as error:
        raise InputError(f"{path / FILE} describes no predictor: {type(error).__name__}: {error}") from None
    return found


def chosen(folder: str, machine: str) -> Base:
    """Return what a predictor's folder holds of one machine.

    Raises
    ------
    InputError
        If it has none, or several and no machine is named.
    """
    found = read_bases(folder)
    fitting = [each for each in found if machine in ("", each.machine)]
    if len(fitting) != 1:
        known = ", ".join(dict.fromkeys(repr(each.machine) for each in found))
        problem = f"machine = {machine!r}" if machine else f"{len(found)} settings"
        raise InputError(f"base {folder!r}: {problem}; choose one of its machines: {known}")
    return fitting[0]


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise TypeError(f"{value!r:.80} is no text")
    return value


def _checked(folder: Path, setting: Mapping[str, Any]) -> Path:
    """Return the folder of a setting's arrays, whose files are those that were written."""
    name = _text(setting["folder"])
    if not name.isdigit():
        raise ValueError(f"folder {name!r:.80}")
    place = folder / name
    check_files(place, setting["files"])
    return place
