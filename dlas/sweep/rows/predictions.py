"""Predicted points: a file of their own, so that no analysis takes them for measured ones.

``predictions.jsonl`` holds one JSON object a line: a point's parts, its device, what was predicted, and which
predictor said so.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import TypedDict

from dlas.bench.store.replacing import make_folder, replacing
from dlas.errors import InputError
from dlas.sweep.rows.files import complete_lines, holds_rows
from dlas.sweep.rows.results import Row

FILE = "predictions.jsonl"
MEASURED = "measured"
"""Column of what was measured, beside predictions of it."""
UNKNOWN = "unknown_kernels"
"""Column of the share of a prediction that stands for kernels of kinds that were never fitted."""
PREDICTED = "predicted"
"""The status of a predicted point in a frame."""
KEPT = (
    *("id", "study", "dataset", "model", "compression", "algorithm", "compiler", "hardware", "batch", "task"),
    *("seed", "reached", "parameters", "macs", "model_bytes", "device", "artifacts"),
)
"""Fields of a row that a predicted point has too."""


class PredictionInterval(TypedDict):
    """What was predicted of one quantity."""

    value: float
    """In the quantity's unit."""
    low: float | None
    """Lower end of the interval. Null where there is none."""
    high: float | None
    """Upper end of the interval."""
    level: float | None
    """Share of new rows that such intervals are to cover."""


@dataclass(frozen=True)
class PredictedPoint:
    """A point that was not measured, and what a predictor says of it."""

    row: Row
    """Its parts and device; its status is ``predicted``, its measurements are missing."""
    predictions: Mapping[str, PredictionInterval]
    """By quantity: ``latency_s``."""
    predictor: str
    """SHA-256 of the predictor's record."""
    in_range: bool
    """Whether its features lie in the ranges that the predictor was fitted to."""
    doubt: str
    """Why not to trust the prediction; empty where nothing speaks against it."""

    def line(self) -> str:
        """Return the point as one line of JSON, newline included."""
        row = asdict(self.row)
        content = {name: row[name] for name in KEPT} | {
            "predictions": self.predictions,
            "predictor": self.predictor,
            "in_range": self.in_range,
            "doubt": self.doubt,
        }
        return json.dumps(content, separators=(",", ":"), allow_nan=False) + "\n"

    @classmethod
    def parse(cls, line: str | bytes) -> PredictedPoint:
        """Return the point in one line.

        Raises
        ------
        ValueError
            If the line is none.
        """
        raw = json.loads(line)
        told = raw.get("predictions") if isinstance(raw, dict) else None
        if not isinstance(told, dict) or not all(isinstance(bounds, dict) for bounds in told.values()):
            raise ValueError("not a predicted point")
        own = {field.name for field in fields(cls)} - {"row"}
        try:
            row = Row(**{name: raw[name] for name in KEPT if name in raw}, key="", status=PREDICTED)
            return cls(row, **{name: raw[name] for name in own})
        except (TypeError, KeyError) as error:
            raise ValueError(f"not a predicted point: {error}") from None


def write_predictions(folder: Path, points: Iterable[PredictedPoint]) -> Path:
    """Write points into a folder, in place of those of earlier predictions, and return the file.

    Raises
    ------
    InputError
        If it cannot be written.
    """
    make_folder(folder, "folder for predictions")
    path = folder / FILE
    try:
        with replacing(path) as partial:
            partial.write_text("".join(point.line() for point in points), encoding="utf-8")
    except OSError as error:
        raise InputError(f"cannot write {str(path)!r}: {error.strerror}") from None
    return path


def holds_predictions(folder: Path) -> bool:
    """Return whether a folder has a file of predicted points."""
    return (folder / FILE).is_file()


def holds_only_predictions(folder: Path) -> bool:
    """Return whether a folder has a file of predicted points, and none of rows."""
    return holds_predictions(folder) and not holds_rows(folder)


def read_predictions(folder: Path) -> Iterator[PredictedPoint]:
    """Yield the predicted points of a folder; none where it has no file of them.

    Raises
    ------
    InputError
        If a line is damaged.
    """
    path = folder / FILE
    if not holds_predictions(folder):
        return
    for number, line in enumerate(complete_lines(path), 1):
        try:
            yield PredictedPoint.parse(line)
        except ValueError as error:
            raise InputError(f"{path}, line {number}: {error}") from None


def predicted_ids(folder: Path, study: str) -> set[str]:
    """Return the ids of the points of a study that a folder predicts; damaged lines are left out."""
    found = set()
    for line in complete_lines(folder / FILE) if holds_predictions(folder) else ():
        with suppress(ValueError, TypeError, KeyError):
            raw = json.loads(line)
            if raw["study"] == study:
                found.add(str(raw["id"]))
    return found


def bound_names(target: str) -> tuple[str, str]:
    """Return the columns of a quantity's bounds: ``latency_low_s`` and ``latency_high_s``."""
    stem, _, unit = target.rpartition("_")
    return f"{stem}_low_{unit}", f"{stem}_high_{unit}"
