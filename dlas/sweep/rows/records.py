"""The record of the table that a row becomes: its quantities, and those derived from them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from dlas.stack import PART_AXES
from dlas.sweep.rows.columns import (
    AGREEMENTS,
    DERIVED,
    DIFFERENCES,
    FINE_TUNING,
    FLOATS,
    INSTANCE,
    INTEGERS,
    MACHINE,
    MACHINE_ID,
    REACHED,
    SAMPLES,
    STEPS,
    TEXTS,
    TRUTHS,
)
from dlas.sweep.rows.labels import label, options
from dlas.sweep.rows.machines import machine_id
from dlas.sweep.rows.results import Row
from dlas.sweep.rows.schema import Layer
from dlas.sweep.rows.trajectories import fine_tuning_seconds

FIELDS: dict[str, tuple[str, ...]] = {
    **{name: (name,) for name in ("study", "status", "task", *TEXTS, *FLOATS, *INTEGERS, *TRUTHS)},
    "compiled_accuracy": ("compiled_accuracy", "accuracy"),
    "compiled_accuracy_low": ("compiled_accuracy", "low"),
    "compiled_accuracy_high": ("compiled_accuracy", "high"),
    **{name: ("compiled_accuracy", name.removeprefix("accuracy_")) for name in (*AGREEMENTS, *DIFFERENCES)},
    **{name: ("reached", name) for name in REACHED},
    "coverage": ("coverage", "macs"),
    **{"trials": ("tuning", "trials"), "search_s": ("tuning", "seconds")},
    **{f"{step}_s": ("seconds", step) for step in STEPS},
    **{f"{step}_waited_s": ("waited", step) for step in STEPS},
    **{f"{step}_cached_s": ("cached", step) for step in STEPS},
    "host": ("environment", "host", "name"),
    **{name: ("device", name) for name in ("cpu", "threads", INSTANCE)},
}
"""Where a row has the columns that are copied from it: a field, or a key of a mapping in a field."""


def record(folder: str, row: Row) -> dict[str, Any]:
    """Return the table's record of a row; each axis's options are a mapping under ``<axis>.``."""
    record: dict[str, Any] = {"folder": folder, "id": row.id}
    record[SAMPLES] = np.asarray(row.latency_s or [], dtype=float)
    record |= {column: _at(row, place) for column, place in FIELDS.items()}
    record |= {axis: label(getattr(row, axis)) for axis in PART_AXES}
    record |= {f"{axis}_name": _part_name(getattr(row, axis)) for axis in PART_AXES}
    record |= {f"{axis}.": options(getattr(row, axis)) for axis in PART_AXES}
    record[FINE_TUNING] = fine_tuning_seconds(row)
    record["image_height"] = _first_height(row.layers)
    record["drift"] = _drift(row.sentinel_s)
    record[MACHINE_ID], record["processor"] = machine_id(row.device), _processor(row.device)
    record[MACHINE] = None  # a name tells machines apart only beside the others
    said: Mapping[str, Any] = (row.imported or {}).get("derived") or {}
    return record | {name: said[name] for name in DERIVED if name in said}


def _at(row: Row, place: tuple[str, ...]) -> Any:
    """Return what a row has at a place; None where it has none."""
    value = getattr(row, place[0])
    for key in place[1:]:
        # Of older rows a mapping inside of another may be something else.
        value = value.get(key) if isinstance(value, Mapping) else None
    return value


def _part_name(content: Mapping[str, Any]) -> str:
    """Return a part's name; for a chain, those of its techniques joined by ``+``."""
    return "+".join(str(link.get("name")) for link in content.get("chain") or [content])


def _processor(device: Mapping[str, Any]) -> str | None:
    """Return ``gpu`` where the device names a GPU, which is then what was measured, or else ``cpu``."""
    return next((name for name in ("gpu", "cpu") if device.get(name)), None)


def _drift(sentinel_s: Sequence[float] | None) -> float | None:
    """Return how much slower the sentinel's slowest run was than its fastest, as a fraction."""
    times = [time for time in sentinel_s or () if time]
    return max(times) / min(times) - 1 if times else None


def _first_height(layers: Sequence[Layer]) -> int | None:
    """Return the height that the first layer with one reads."""
    return next((height for layer in layers if (height := layer.get("h")) is not None), None)
