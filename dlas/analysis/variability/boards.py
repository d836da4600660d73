"""Boards: which rows were measured on the same one of several machines alike."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import pandas as pd

from dlas.errors import InputError
from dlas.sweep.rows.columns import INSTANCE, MACHINE

ToldBy = Literal["instance", "machine", "folder"]
IN_WORDS: dict[ToldBy, str] = {
    "instance": "the instance of a device",
    "machine": "the machine",
    "folder": "the folder, as all rows are of one machine: the boards are its runs",
}
"""What tells boards apart, as the end of a sentence."""


@dataclass(frozen=True)
class Boards:
    """The board of each row, and what told it."""

    of: pd.Series
    """Names, by the lines of the frame; missing where nothing is known."""
    told_by: ToldBy


def boards_of(frame: pd.DataFrame) -> Boards:
    """Return which board each row was measured on.

    The first of these that tells two boards apart: the instance of the device, where a row without one
    is of the machine itself; the machine; the folder.

    Parameters
    ----------
    frame : DataFrame
        What :func:`dlas.sweep.rows.frame.read` returned.

    Raises
    ------
    InputError
        If none of them does.
    """
    instances, machines = frame[INSTANCE].astype("string"), frame[MACHINE].astype("string")
    candidates: dict[ToldBy, pd.Series] = {
        "instance": instances.fillna(machines) if instances.notna().any() else instances,
        "machine": machines,
        "folder": frame["folder"].astype("string"),
    }
    for told_by, names in candidates.items():
        if names.nunique() > 1:
            return Boards(names, told_by)
    known = next(iter(candidates["instance"].dropna()), None) or next(iter(machines.dropna()), "unknown")
    folders = ", ".join(sorted(frame["folder"].unique()))
    raise InputError(
        f"all rows that can be compared are of one board ({known}) in one folder ({folders}): expected rows "
        "of two boards or more (of different `instance` or machine), or two runs in two folders"
    )
