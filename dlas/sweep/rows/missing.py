"""Points of a folder's study that have no row, so that a sweep in part does not look finished.

Who runs a study notes in the file that its folder keeps how many points it has: readers then need neither its
parts nor its expansion.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Set
from contextlib import suppress
from pathlib import Path
from typing import TypedDict

import pandas as pd

from dlas.bench.store import toml
from dlas.errors import InputError
from dlas.sweep.rows.labels import points as counted
from dlas.sweep.rows.predictions import predicted_ids

FILE = "study.toml"
HEADING = "# Written by `dlas run`; `dlas run` with this folder goes on with it.\n"
"""First line of the files that are written here, which tells them from the user's own."""
IN_PART = "# Its rows are of chosen points.\n"
"""Second line where nobody means to measure all points."""
NOTE = re.compile(r"# (\d+) points, (\d+) rows of others, text (\w+)\n")
"""Second line where rows are to cover all points; the text tells whether the study was edited since."""
MISSING = "missing"
"""Key of what is missing in the ``attrs`` of a frame."""


class MissingPoints(TypedDict):
    """A folder whose study has more points than the folder has rows of them."""

    folder: str
    study: str | None
    """Its name; None where the number of its points is not known."""
    points: int | None
    """All that it has; None where nobody noted that."""
    rows: int
    """Those with a row."""
    predicted: int
    """Others that were predicted."""
    missing: int | None
    """Others."""


def headed(text: str, points: int | None, others: int) -> str:
    """Return the text of a study below the lines that say who wrote it and how many points it has.

    Parameters
    ----------
    points : int or None
        None where rows are of chosen points.
    others : int
        Rows in the folder whose points are not in the study.
    """
    if points is None:
        return HEADING + IN_PART + text
    return f"{HEADING}# {points} points, {others} rows of others, text {_digest(text)}\n{text}"


def body(text: str) -> str:
    """Return the text of a study without the lines of :func:`headed`."""
    rest = text.removeprefix(HEADING).removeprefix(IN_PART)
    note = NOTE.match(rest)
    return rest[note.end() :] if note else rest


def missing_points(folder: Path, ids: Set[str]) -> MissingPoints | None:
    """Return how many points a folder's study has, None where none is without a row or there is no study.

    Parameters
    ----------
    ids : set of str
        Those of the folder's rows.
    """
    if not (folder / FILE).exists():
        return None
    text = ""
    with suppress(InputError):  # rows are read all the same
        text = toml.read_text(folder / FILE, "study")
    if text.startswith(HEADING + IN_PART):
        return None
    note = NOTE.match(text.removeprefix(HEADING))
    if note is None or note[3] != _digest(body(text)):
        return MissingPoints(
            folder=str(folder), study=None, points=None, rows=len(ids), predicted=0, missing=None
        )
    points, own = int(note[1]), max(0, len(ids) - int(note[2]))
    if own >= points:
        return None
    name = str(toml.parse(body(text)).get("name"))
    predicted = predicted_ids(folder, name) - ids
    return MissingPoints(
        folder=str(folder),
        study=name,
        points=points,
        rows=own,
        predicted=len(predicted),
        missing=max(0, points - own - len(predicted)),
    )


def missing_of(frame: pd.DataFrame) -> list[MissingPoints]:
    """Return what is missing in the folders of a frame, before anything was filtered."""
    found: list[MissingPoints] = frame.attrs.get(MISSING, [])
    return found


def in_words(each: MissingPoints) -> str:
    """Return a folder's missing points as a sentence without a full stop."""
    folder = each["folder"]
    if each["points"] is None:
        return f"{folder} does not tell how many points its study has: dlas status {folder} counts them"
    told = f"{folder} has rows of {each['rows']:,} of the {counted(each['points'])} of its study"
    if not each["predicted"]:
        return f"{told}; {each['missing']:,} missing, to go on: dlas run {folder}"
    others = f"; {each['missing']:,} missing" if each["missing"] else ""
    return f"{told}; {each['predicted']:,} predicted{others}"


def told(frame: pd.DataFrame, filtered: bool, predictions: bool = False) -> list[str]:
    """Return a sentence for each folder of a frame whose study has more points.

    Parameters
    ----------
    filtered : bool
        Whether filters leave out rows, which are counted all the same.
    predictions : bool
        Whether predicted points are shown, so that they need no sentence.
    """
    shown = [each for each in missing_of(frame) if not (predictions and each["missing"] == 0)]
    return [in_words(each) + (" (before filters)" if filtered else "") for each in shown]


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:16]
