"""The layers of rows as a table: one line a layer, one column a quantity."""

from __future__ import annotations

import json
import typing
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import pandas as pd

from dlas.stack import PART_AXES
from dlas.sweep.rows.columns import AXES, MACHINE, MACHINE_ID
from dlas.sweep.rows.labels import options
from dlas.sweep.rows.layer_times import profile
from dlas.sweep.rows.results import Row
from dlas.sweep.rows.schema import Layer
from dlas.sweep.rows.typed import number, text, truth

LIBRARY = "library"
"""The algorithm of a runtime's own kernels."""
POINT = ("id", "study", *AXES, "status", "network_latency_s", "threads", MACHINE, MACHINE_ID, "folder")
"""Columns that all layers of a row share, beside its options."""
RENAMED = {"name": "layer", "algorithm": "ran", "options": "ran_options", "latency_s": "profiled_s"}
"""Names of columns that differ from the field of a row's layer."""
LISTED = {
    "strides": ("stride_h", "stride_w"),
    "dilation": ("dilation_h", "dilation_w"),
    "padding": ("padding_top", "padding_left", "padding_bottom", "padding_right"),
}
"""Columns of the numbers in a list."""
FIRST = ("number", "layer", "ran", "ran_options", "covered", "declined", "latency_s", "profiled_s")


def layers_frame(points: pd.DataFrame, records: Sequence[Mapping[str, Any]]) -> pd.DataFrame:
    """Return the layers of rows, in the order of the network.

    Parameters
    ----------
    points : DataFrame
        The table of the rows.
    records : sequence of mapping
        What :func:`layer_records` returned for its lines.

    Returns
    -------
    DataFrame
        The point's axes, options and machine are named as in the table of rows; ``network_latency_s``
        is its median latency.  Of each layer there are its ``number`` in the row from 0, its name
        ``layer``, the algorithm that ``ran`` with ``ran_options``, whether the requested algorithm
        ``covered`` it (missing for a runtime's own kernels) and else why it ``declined``, its
        ``latency_s`` without the profiler's cost and with it as ``profiled_s``, its shape by the
        letters of a convolution, and what else :class:`dlas.stack.Layer` has; mappings are JSON.
        An operator other than a convolution has a name and a time alone.
    """
    columns: dict[str, Any] = {}
    for name, kind in _kinds().items():
        values = [each.get(name) for each in records]
        if kind in (int, float):
            columns[name] = number(values, whole=kind is int)
        else:
            columns[name] = truth(values) if kind is bool else text(values)
    renamed = points.rename(columns={"latency_s": "network_latency_s"})
    options = [name for name in points if str(name).startswith(tuple(f"{axis}." for axis in PART_AXES))]
    named = [f"{axis}_name" for axis in PART_AXES]
    lines = renamed.iloc[[each["line"] for each in records]].reset_index(drop=True)
    return pd.concat([lines[[*POINT]], pd.DataFrame(columns), lines[[*named, *options]]], axis=1)


def layer_records(line: int, row: Row) -> Iterator[dict[str, Any]]:
    """Yield a record for each layer of a row, which is this line of the table."""
    times = profile(row)
    for index, layer in enumerate(row.layers):
        own = layer.get("algorithm") not in (None, LIBRARY)
        known = {
            "line": line,
            "number": index,
            "latency_s": times.seconds[index] if times else None,
            "covered": not layer.get("declined") if own else None,
        }
        yield known | _quantities(layer)


def _quantities(layer: Mapping[str, Any]) -> dict[str, Any]:
    """Return the columns that a layer of a row becomes."""
    found: dict[str, Any] = {}
    for key, value in layer.items():
        if key in LISTED:
            found |= dict(zip(LISTED[key], value or (), strict=False))
        elif key == "options":
            found["ran_options"] = (
                ", ".join(f"{name}={each}" for name, each in options(value).items()) or None
            )
        elif key == "types":
            found |= {f"type_{name}": kind for name, kind in (value or {}).items()}
        else:
            plain = value is None or isinstance(value, str | int | float)
            found[RENAMED.get(key, key)] = value if plain else json.dumps(value)
    return found


def _kinds() -> dict[str, type]:
    """Return the type of each column of a layer's own, in order."""
    hints = typing.get_type_hints(Layer)
    own: dict[str, type] = {"number": int, "covered": bool, "latency_s": float}
    for name, hint in hints.items():
        if name in LISTED:
            own |= dict.fromkeys(LISTED[name], int)
        elif name == "types":
            own |= {f"type_{each}": str for each in typing.get_type_hints(hint)}
        else:
            kinds = {hint, *typing.get_args(hint)}
            own[RENAMED.get(name, name)] = next((each for each in (bool, int, float) if each in kinds), str)
    return {name: own.pop(name) for name in FIRST} | own
