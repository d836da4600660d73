"""The fastest algorithm of each layer, as rows measured it: what a table for ``per_layer`` holds."""

from __future__ import annotations

import json
import statistics
from collections import defaultdict
from collections.abc import Iterable, Iterator
from typing import Any

from dlas import parts
from dlas.analysis.frame import MACHINE
from dlas.analysis.labels import label
from dlas.errors import InputError
from dlas.machine import machine_name
from dlas.results import Row

SAME = ("dataset", "model", "compression", "compiler", "hardware", "batch", MACHINE)
"""What must not differ between times that are compared; different seeds are repetitions."""
PASSED_OVER = (parts.LIBRARY, "per_layer")
"""Values of the algorithm axis that are no choice for one layer."""


def fastest_by_layer(rows: Iterable[Row]) -> dict[str, dict[str, Any]]:
    """Return the algorithm with the smallest median time for each layer.

    What a layout costs to change between two layers is in neither layer's time.

    Parameters
    ----------
    rows : iterable of Row
        Those with another status than ``ok`` are passed over.

    Returns
    -------
    dict
        By layer, the algorithm as rows write it: ``{"name": "gemm"}`` and its
        options.  Where the algorithm asked for declined a layer, it is the one
        that computed the layer in its place.

    Raises
    ------
    InputError
        If no layer was timed, or the rows are of several networks, compilers
        or devices, whose times cannot be compared.
    """
    settings: dict[str, dict[str, None]] = {name: {} for name in SAME}
    seconds: dict[str, dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
    for row in rows:
        for layer, algorithm, latency in _timed(row):
            seconds[layer][algorithm].append(latency)
            for name in SAME:
                settings[name][_value(row, name)] = None
    _check_comparable(settings)
    if not seconds:
        raise InputError(f"no row with status ok has times of layers ({', '.join(PASSED_OVER)} do not count)")
    return {layer: json.loads(_fastest(algorithms)) for layer, algorithms in seconds.items()}


def _timed(row: Row) -> Iterator[tuple[str, str, float]]:
    """Yield each layer's name, algorithm (its content as JSON) and seconds."""
    if row.status != "ok" or row.algorithm["name"] in PASSED_OVER:
        return
    for layer in row.layers:
        if layer.get("latency_s") is None or "algorithm" not in layer:
            continue
        declined = layer.get("declined") is not None
        algorithm = {"name": layer["algorithm"]} if declined else row.algorithm
        if not declined or algorithm["name"] in parts.names("algorithm"):
            yield layer["name"], json.dumps(algorithm, sort_keys=True), layer["latency_s"]


def _fastest(algorithms: dict[str, list[float]]) -> str:
    return min(algorithms, key=lambda algorithm: statistics.median(algorithms[algorithm]))


def _value(row: Row, name: str) -> str:
    return str(machine_name(row.device)) if name == MACHINE else label(getattr(row, name))


def _check_comparable(settings: dict[str, dict[str, None]]) -> None:
    """Refuse rows of which no two need to have the same fastest algorithm."""
    several = {name: list(values) for name, values in settings.items() if len(values) > 1}
    if several:
        listed = "; ".join(f"{name} {', '.join(values)}" for name, values in several.items())
        raise InputError(f"times of layers are compared within one setting, and there are several: {listed}")
