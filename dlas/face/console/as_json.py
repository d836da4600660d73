"""What tables show, as values for JSON: times in seconds, None for what is missing."""

from __future__ import annotations

import json
import math
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from dlas.analysis.against.changes import Changes
from dlas.analysis.against.differences import RowDifference
from dlas.analysis.against.history import VersionHistory
from dlas.analysis.against.noise import RunNoise
from dlas.analysis.compare import Comparison
from dlas.analysis.repeats import merge_repeats
from dlas.face.tables.points import ordered
from dlas.sweep.rows.columns import SAMPLES
from dlas.sweep.rows.missing import missing_of
from dlas.sweep.rows.results import Row

if TYPE_CHECKING:
    from dlas.prediction.learning.stored import StoredPredictor

ORDERING = ("group_number", "bad")
"""Columns that only order a table."""
DIGITS = 15


def of_table(frame: pd.DataFrame, sort: str = "latency") -> list[dict[str, Any]]:
    """Return the lines of ``dlas.face.tables.points.table``: the columns of :func:`dlas.read` but samples.

    ``relative`` is the speed over that of the fastest of its kind, at most 1, and ``missing_points`` counts
    the points of the folder's study that have neither a row nor a prediction, null where that is unknown.
    """
    lines = ordered(merge_repeats(frame), sort).drop(columns=[SAMPLES, *ORDERING], errors="ignore")
    text = lines.to_json(orient="records", date_format="iso", double_precision=DIGITS)
    records: list[dict[str, Any]] = json.loads(text)
    missing = {each["folder"]: each["missing"] for each in missing_of(frame)}
    return [{**record, "missing_points": missing.get(record["folder"], 0)} for record in records]


def of_comparison(comparison: Comparison, rows: pd.DataFrame) -> dict[str, Any]:
    """Return a comparison of rows: its groups with each value's times and ratios, and the geometric means.

    ``missing`` lists the folders whose studies have more points.
    """
    values: dict[str, Any] = finite({**asdict(comparison), "means": comparison.means()})
    values["missing"] = missing_of(rows)
    for group in (*values["groups"], *values["unmatched"]):
        for compared in group["rows"].values():
            del compared["row"]  # a line of a frame that nobody else has
    return values


def of_predictor(stored: StoredPredictor, number: str | None = None) -> dict[str, Any]:
    """Return a predictor's card: what it is, and of each setting (or the one with a number) how wrong it is.

    Bounds and errors by size are in the target's unit.
    """
    # Its module imports SciPy, which the other values do without.
    from dlas.prediction.learning.cards import card_of

    values: dict[str, Any] = finite(
        {
            **stored.record.model_dump(exclude={"settings"}),
            "settings": [
                {
                    **card.setting.model_dump(exclude={"rows", "tried", "files", "importances"}),
                    "rows": len(card.setting.rows),
                    "by_size": [asdict(band) for band in card.bands],
                }
                for card in card_of(stored, number)
            ],
        }
    )
    return values


def of_changes(changes: Changes) -> dict[str, Any]:
    """Return what changed between two runs: each point's line, what the machine did, and other quantities."""
    machine = None if changes.noise is None else _machine(changes.noise)
    quantities = {
        name: [{"id": pair.row.id, "difference": difference} for pair, difference in found]
        for name, found in changes.quantities.items()
    }
    content: dict[str, Any] = finite(
        {"points": changes.frame().to_dict("records"), "machine": machine, "quantities": quantities}
    )
    return content


def _machine(noise: RunNoise) -> dict[str, float | str | None]:
    """Return what a machine did between two runs."""
    return {
        "shift": float(np.expm1(noise.shift)),
        "between_runs": float(np.sqrt(noise.between)),
        "times_by": noise.by,
        "unshared": noise.unshared,
        "sentinel": None if noise.sentinel is None else float(np.expm1(noise.sentinel)),
        "controls": noise.controls,
    }


def of_history(history: VersionHistory) -> dict[str, Any]:
    """Return points over versions: each one's line at each version, and what machines did between these."""
    steps = [
        {
            "machine": machine,
            "before": history.names[before][0],
            "now": history.names[now][0],
            **_machine(noise),
        }
        for (machine, before, now), noise in history.steps.items()
    ]
    versions = [{"version": number, "folder": folder} for number, folder in history.names.values()]
    content: dict[str, Any] = finite(
        {
            "points": history.frame().to_dict("records"),
            "versions": versions,
            "machines": steps,
            "detectable": history.detectable,
            "rows_without_time": history.untimed,
        }
    )
    return content


def of_row(row: Row) -> dict[str, Any]:
    """Return a row as its file has it, with the fields that it leaves out."""
    content: dict[str, Any] = finite(asdict(row))
    return content


def finite(value: Any) -> Any:
    """Return a value with None in the place of numbers that JSON cannot hold."""
    if isinstance(value, dict):
        return {key: finite(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [finite(item) for item in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def of_difference(found: RowDifference) -> dict[str, Any]:
    """Return what differs between two rows of a point: times, what may explain them, facts and layers."""
    facts = {
        place: {name: {"before": old, "now": new} for name, old, new in every}
        for place, every in found.facts().items()
    }
    content: dict[str, Any] = finite(
        {
            "id": found.now.id,
            "folders": dict(zip(("before", "now"), found.folders, strict=True)),
            "outcome": found.change.outcome,
            "latency_s": dict(zip(("before", "now"), found.times, strict=True)),
            **dict(zip(("ratio", "ratio_low", "ratio_high"), found.ratio, strict=True)),
            "p": found.change.p,
            "q": found.change.q,
            "detectable": found.change.detectable,
            "machine": None if found.noise is None else _machine(found.noise),
            "causes": list(found.change.causes),
            "differences": facts,
            "layers": [{"name": name, "longer_s": seconds} for name, seconds in found.layers],
        }
    )
    return content
