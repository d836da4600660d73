"""What the table of rows leaves out: time per layer, and everything known of machine and software."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pandas as pd

from dlas.results import Row, read_rows


@dataclass(frozen=True)
class Layer:
    """One layer's time: its name, what computes it, seconds a call."""

    name: str
    algorithm: str
    latency_s: float


@dataclass
class Details:
    """Details of the points of a frame.

    Parameters
    ----------
    layers : dict of int to list of Layer
        By line of the frame, in the network's order; lines without times of layers are not there.
    facts : dict of str to Counter
        What is known of machines and software: by name, each value with how many rows have it.
    """

    layers: dict[int, list[Layer]] = field(default_factory=dict)
    facts: dict[str, Counter[str]] = field(default_factory=dict)


def read_details(folders: Sequence[str], points: pd.DataFrame) -> Details:
    """Return the details of ``points``, read from their folders.

    Parameters
    ----------
    folders : sequence of str
        As the frame's column ``folder`` names them.
    points : DataFrame
        One line a point, with ``folder`` and ``id``.
    """
    lines = {key: line for line, key in enumerate(zip(points["folder"], points["id"], strict=True))}
    found = Details()
    for folder in folders:
        for row in read_rows(Path(folder)):
            line = lines.get((folder, row.id))
            if line is None:
                continue
            if layers := list(_layers(row)):
                found.layers[line] = layers
            for name, value in _facts(row):
                found.facts.setdefault(name, Counter())[value] += 1
    return found


def _layers(row: Row) -> Iterator[Layer]:
    for layer in row.layers or ():
        if isinstance(layer, Mapping) and isinstance(layer.get("latency_s"), int | float):
            algorithm = layer.get("algorithm") or "other"
            yield Layer(sys.intern(str(layer.get("name"))), sys.intern(str(algorithm)), layer["latency_s"])


def _facts(row: Row) -> Iterator[tuple[str, str]]:
    """Yield what is known of the software and the machine of a row."""
    for prefix, found in (("", row.environment), ("device.", row.device)):
        yield from _flat(found, prefix)


def _flat(found: Any, prefix: str) -> Iterator[tuple[str, str]]:
    if not isinstance(found, Mapping):
        return
    for key, value in found.items():
        if isinstance(value, Mapping):
            yield from _flat(value, f"{prefix}{key}.")
        elif value is not None:
            text = ", ".join(map(str, value)) if isinstance(value, list) else str(value)
            yield f"{prefix}{key}", text
