"""The columns of the table that rows become: their quantities, and those derived from them."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from operator import attrgetter
from typing import Any

import numpy as np
import pandas as pd

from dlas.stack import PART_AXES
from dlas.stack.types import Floats
from dlas.sweep.rows import intervals
from dlas.sweep.rows.columns import (
    AGREEMENTS,
    DERIVED,
    DIFFERENCES,
    FEATURE,
    FINE_TUNING,
    FLOATS,
    INSTANCE,
    INTEGERS,
    MACHINE,
    MACHINE_ID,
    NUMBERS,
    ORDER,
    REACHED,
    SAMPLES,
    STEPS,
    TEXTS,
    TRUTHS,
    WHOLE,
)
from dlas.sweep.rows.labels import label, options
from dlas.sweep.rows.lines import SHARED
from dlas.sweep.rows.machines import machine_id
from dlas.sweep.rows.schema import Device
from dlas.sweep.rows.trajectories import fine_tuning_seconds
from dlas.sweep.rows.typed import number, option_columns, text, times, truth

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


OF_SAMPLES = ("latency_low_s", "latency_high_s", "latency_min_s", "samples")
"""Columns that are derived from samples, where there are any."""
ROWS_AT_ONCE = 4096
"""Rows that wait to become columns."""
OF_SHARED = {name: place for name, place in FIELDS.items() if place[0] in SHARED}
OWN = {name: place for name, place in FIELDS.items() if place[0] not in SHARED}
READ = tuple(
    dict.fromkeys(
        (*SHARED, *(place[0] for place in OWN.values()), "id", "reached", "layers", "sentinel_s", "started")
    )
)
"""Fields of a row that columns are made of."""


class RowTable:
    """Rows on their way to a table, each let go once its quantities stand in columns."""

    def __init__(self) -> None:
        self.devices: dict[str | None, Device] = {}
        """A device of each machine, by the machine's fingerprint."""
        self._waiting: list[tuple[str, Any]] = []
        self._pieces: dict[str, list[Any]] = {}
        self._contents: dict[str, _Contents] = {name: _Contents() for name in ("folder", *SHARED)}
        self._samples: list[Floats] = []
        self._said: dict[str, dict[int, Any]] = {}
        self._features: dict[str, dict[int, float]] = {}
        self._count = 0

    def __len__(self) -> int:
        return self._count

    def add(self, folder: str, row: Any) -> None:
        """Add a row of a folder: a :class:`Row`, or a line of one by :class:`LineReader`."""
        origin: Mapping[str, Any] = row.imported or {}
        said = origin.get("derived") or {}
        for name, value in (origin.get("features") or {}).items():
            self._features.setdefault(f"{FEATURE}{name}", {})[self._count] = value
        for name in DERIVED:
            if name in said:
                self._said.setdefault(name, {})[self._count] = said[name]
        self._samples.append(np.asarray(row.latency_s or (), dtype=float))
        self._waiting.append((folder, row))
        self._count += 1
        if len(self._waiting) >= ROWS_AT_ONCE:
            self._flush()

    def columns(self) -> dict[str, Any]:
        """Return the columns of :data:`dlas.sweep.rows.columns.ORDER`, without names of machines."""
        self._flush()
        found = self._derived() | self._of_shared()
        for name, pieces in self._pieces.items():
            found[name] = pd.concat(pieces, ignore_index=True)
        found["started"] = times(found["started"])
        for name, values in self._said.items():
            if name not in OF_SAMPLES:
                found[name] = _typed(name, _replaced(found[name], values))
        for name, told in self._features.items():
            found[name] = number([told.get(row) for row in range(self._count)])
        found[MACHINE] = text([None] * self._count)
        ordered: dict[str, Any] = {}
        for name in ORDER:
            if name.endswith("."):
                ordered |= {key: found[key] for key in found if key.startswith(name)}
            else:
                ordered[name] = found[name]
        return ordered

    def _flush(self) -> None:
        folders, rows = [folder for folder, _ in self._waiting], [row for _, row in self._waiting]
        self._waiting.clear()
        values = list(zip(*map(attrgetter(*READ), rows), strict=True)) or [()] * len(READ)
        fields = dict(zip(READ, values, strict=True))
        self._contents["folder"].add(folders)
        for name in SHARED:
            self._contents[name].add(fields[name])
        own = {column: _at(fields, *place) for column, place in OWN.items()}
        own["id"] = list(fields["id"])
        own[FINE_TUNING] = [fine_tuning_seconds(each) if each else None for each in fields["reached"]]
        own["image_height"] = [_first_height(layers) for layers in fields["layers"]]
        own["drift"] = [_drift(sentinel_s) for sentinel_s in fields["sentinel_s"]]
        own["started"] = list(fields["started"])
        for name, values in own.items():
            self._pieces.setdefault(name, []).append(pd.Series(_typed(name, values)))

    def _derived(self) -> dict[str, Any]:
        """Return what follows from samples; of imported rows without samples, what their file says."""
        median, low, high = intervals.medians(self._samples).T
        samples = np.empty(self._count, dtype=object)
        samples[:] = self._samples
        least = np.array([each.min() if len(each) else math.nan for each in self._samples], dtype=float)
        found: dict[str, Any] = {"latency_low_s": low, "latency_high_s": high, "latency_min_s": least}
        found["samples"] = np.array([len(each) for each in self._samples], dtype=float)
        for name in OF_SAMPLES:
            said = self._said.get(name, {})
            found[name][list(said)] = number(list(said.values()))
        return found | {
            "latency_s": median,
            SAMPLES: samples,
            "samples": number(found["samples"].tolist(), whole=True),
        }

    def _of_shared(self) -> dict[str, Any]:
        """Return what follows from contents that many rows share: worked out once for each."""
        found: dict[str, Any] = {"folder": self._contents["folder"].taken(text)}
        for axis in PART_AXES:
            contents = self._contents[axis]
            found[axis] = contents.taken(lambda parts: text([label(part) for part in parts]))
            found[f"{axis}_name"] = contents.taken(lambda parts: text([_part_name(part) for part in parts]))
            given = option_columns(f"{axis}.", [options(part) for part in contents.values])
            found |= {name: values.take(contents.codes()) for name, values in given.items()}
        devices = self._contents["device"]
        machines = [machine_id(device or {}) for device in devices.values]
        for machine, device in zip(machines, devices.values, strict=True):
            self.devices.setdefault(machine, device or Device())
        found[MACHINE_ID] = devices.taken(lambda _: text(machines))
        found["processor"] = devices.taken(lambda each: text([_processor(device or {}) for device in each]))
        for name, place in OF_SHARED.items():
            found[name] = self._contents[place[0]].taken(partial(_inner_column, name, place[1:]))
        return found


class _Contents:
    """The different values of what many rows share, and which of them each row has."""

    def __init__(self) -> None:
        self.values: list[Any] = []
        self._codes: list[Any] = []
        self._by_identity: dict[Any, int] = {}

    def add(self, values: Sequence[Any]) -> None:
        # Rows that were read share the object; the list keeps it, so that its number stays its own.
        codes = []
        for value in values:
            key = value if isinstance(value, str) else id(value)
            code = self._by_identity.get(key)
            if code is None:
                code = self._by_identity[key] = len(self.values)
                self.values.append(value)
            codes.append(code)
        self._codes.append(np.array(codes, dtype=np.int32))

    def codes(self) -> Any:
        """Return the place of each row's value, int [rows]."""
        return np.concatenate([np.zeros(0, dtype=np.int32), *self._codes])

    def taken(self, column: Callable[[list[Any]], Any]) -> Any:
        """Return the column of all rows, from that of the different values."""
        return column(self.values).take(self.codes())


def _replaced(column: Any, values: Mapping[int, Any]) -> list[Any]:
    """Return a column's values, None for missing ones, with some replaced."""
    found = [None if pd.isna(value) else value for value in column]
    for line, value in values.items():
        found[line] = value
    return found


def _typed(name: str, values: list[Any]) -> Any:
    """Return values in the type of their column."""
    if name in TRUTHS:
        return truth(values)
    if name in WHOLE:
        return number(values, whole=True)
    return number(values) if name in NUMBERS else text(values)


def _at(fields: Mapping[str, Sequence[Any]], name: str, key: str | None = None) -> list[Any]:
    """Return what rows have in a field, or at a key of the mapping there; None where one has none."""
    values = fields[name]
    return list(values) if key is None else [value.get(key) if value else None for value in values]


def _inner_column(name: str, keys: Sequence[str], values: Sequence[Any]) -> Any:
    return _typed(name, [_inside(value, keys) for value in values])


def _inside(value: Any, keys: Sequence[str]) -> Any:
    for key in keys:
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


def _first_height(layers: Sequence[Any] | None) -> int | None:
    """Return the height that the first layer with one reads."""
    for layer in layers or ():
        height = layer.get("h") if isinstance(layer, Mapping) else getattr(layer, "h", None)
        if height is not None:
            return int(height)
    return None
