"""``dlas show`` of a network: its compression, its operators and layers, and the search of their code."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from rich.text import Text

from dlas.face.tables.columns import Strip, maybe, names, numbers, table_of
from dlas.face.tables.text import Grid
from dlas.sweep.rows.labels import MISSING, amount, convolution, duration, milliseconds, shortened
from dlas.sweep.rows.layer_times import compared_sums, profile
from dlas.sweep.rows.operators import Kind, kinds
from dlas.sweep.rows.results import CURVES, Row

MOST_STEPS = 5
"""Most improvements of a search that are shown, the last."""


def grids(folder: str | os.PathLike[str], row: Row) -> Iterator[Grid]:
    """Yield the tables of a network: its compression, its layers, its tuning."""
    if curve := _list(row.reached, "curve"):
        yield _compressed(curve)
    if found := kinds(row):
        yield _kinds(found)
    if row.layers or _shares(row):
        yield _layers(row)
    if row.layers and row.tuning:
        yield _curves(folder, row)


def _compressed(curve: Sequence[Mapping[str, Any]]) -> Grid:
    """Return the levels of a pruning with their shares pruned, accuracies and times."""
    columns = [
        numbers("level", [maybe(step.get("level"), _decimal) for step in curve]),
        numbers("pruned", [maybe(step.get("ratio"), _percent) for step in curve]),
        numbers("before", [maybe(step.get("accuracy_before"), _percent) for step in curve]),
        numbers("accuracy", [maybe(step.get("accuracy"), _percent) for step in curve]),
        numbers("validation", [maybe(step.get("validation_accuracy"), _percent) for step in curve], drop=1),
        numbers("epochs", [maybe(step.get("epochs"), str) for step in curve], drop=2),
        numbers("took", [maybe(step.get("seconds"), duration) for step in curve], drop=2),
    ]
    total = sum(step.get("seconds") or 0 for step in curve)
    above = Text("compression", style="bold").append(
        f": {len(curve) - 1} levels in {duration(total)}; accuracy before and after fine-tuning",
        style="not bold",
    )
    return _grid(columns, above)


def _list(mapping: object, name: str) -> list[Mapping[str, Any]]:
    """Return the mappings in a list that a mapping holds; none where it is no such list."""
    values = mapping.get(name) if isinstance(mapping, Mapping) else None
    return [value for value in values if isinstance(value, Mapping)] if isinstance(values, list) else []


def _shares(row: Row) -> dict[str, Any]:
    """Return the share of weights pruned by layer."""
    shares = row.reached.get("layers") if isinstance(row.reached, Mapping) else None
    return dict(shares) if isinstance(shares, Mapping) else {}


def _percent(share: float) -> str:
    return f"{share:.2%}"


def _decimal(number: float) -> str:
    return f"{number:g}"


def _kinds(found: Sequence[Kind]) -> Grid:
    """Return the operators by kind: what is computed together, how often, and its share of the time."""
    total = sum(kind.latency_s for kind in found)
    columns = [
        names("operators", [kind.name for kind in found]),
        numbers("layers", [str(kind.count) for kind in found]),
        numbers("ms", [milliseconds(kind.latency_s) for kind in found]),
        numbers("share", [f"{kind.latency_s / total:.1%}" if total else MISSING for kind in found]),
        numbers("backward ms", [maybe(kind.backward_s, milliseconds) for kind in found]),
    ]
    above = Text("operators", style="bold").append(f": {len(found)} kinds by time", style="not bold")
    return _grid(columns, above)


def _layers(row: Row) -> Grid:
    """Return the layers, the slowest first, with their share of the time of all layers."""
    shares, profiled = _shares(row), profile(row)
    rows: list[dict[str, Any]] = [dict(layer) for layer in row.layers or [{"name": name} for name in shares]]
    for layer, time in zip(rows, profiled.seconds if profiled else (), strict=False):
        layer["latency_s"] = time
    total = profiled.total_s if profiled else 0.0
    layers = sorted(rows, key=lambda layer: -(layer.get("latency_s") or 0))
    columns = [
        names("layer", [str(layer.get("name")) for layer in layers]),
        numbers("ms", [maybe(layer.get("latency_s"), milliseconds) for layer in layers]),
        numbers(
            "share", [maybe(layer.get("latency_s"), lambda time: f"{time / total:.1%}") for layer in layers]
        ),
        names("algorithm", [_algorithm(layer) for layer in layers]),
        numbers("convolution", [convolution(layer) for layer in layers], drop=1),
        numbers("schedule", [_schedule(layer) for layer in layers], drop=2),
        numbers("MACs", [maybe(layer.get("macs"), amount) for layer in layers], drop=2),
        numbers("pruned", [maybe(shares.get(str(layer.get("name"))), _percent) for layer in layers], drop=2),
        numbers("nonzeros", [maybe(layer.get("nonzeros"), amount) for layer in layers], drop=4),
        numbers("MAC/s", [_rate(layer) for layer in layers], drop=3),
    ]
    above = [Text("layers", style="bold").append(f": {len(layers)}", style="not bold")]
    if profiled:
        timed = sum(time is not None for time in profiled.seconds)
        above[0].append(f", {timed} timed: {compared_sums(profiled.profiled_s, profiled.latency_s)}")
        above.append(Text(f"ms: {profiled.correction}; together {milliseconds(total)} ms"))
    return _grid(columns, *above)


def _grid(strips: Iterable[Strip], *above: Text) -> Grid:
    """Return the columns in which something is known as a table."""
    return Grid(table_of([strip for strip in strips if not strip.is_empty]), above)


def _algorithm(layer: Mapping[str, Any]) -> str:
    """Return the algorithm of a layer with its options, and why the requested one declined it."""
    options = (f" {name}={value}" for name, value in (layer.get("options") or {}).items())
    name = "".join((str(layer.get("algorithm") or ""), *options))
    return f"{name}: declined, {shortened(str(layer['declined']), 60)}" if layer.get("declined") else name


def _schedule(layer: Mapping[str, Any]) -> str:
    """Return the decisions of a layer's schedule."""
    decisions = layer.get("decisions")
    if isinstance(decisions, Mapping):
        decisions = ", ".join(f"{name} {value}" for name, value in decisions.items())
    return shortened(str(decisions), 60) if decisions else ""


def _curves(folder: str | os.PathLike[str], row: Row) -> Grid:
    """Return the search of each workload: its best time after each improvement."""
    try:
        curves = json.loads((Path(folder) / CURVES / f"{row.id}.json").read_text(encoding="utf-8"))
        columns = [
            names("layers", [shortened(", ".join(curve["layers"]), 60) for curve in curves]),
            names("space", [str(curve["space"]) for curve in curves]),
            numbers("trials", [str(curve["trials"]) for curve in curves]),
            numbers("minimal ms", [maybe(curve["minimal_s"], milliseconds) for curve in curves]),
            numbers("best ms", [milliseconds(curve["best"][-1][2]) for curve in curves]),
            names("best ms after so many trials", [_steps(curve["best"]) for curve in curves]),
        ]
    except (OSError, ValueError, KeyError, TypeError, IndexError):
        return _grid([], Text("tuning", style="bold").append(": its curves are not there"))
    return _grid(columns, Text("tuning", style="bold").append(f": {len(curves)} workloads"))


def _steps(best: Sequence[Sequence[float]]) -> str:
    """Return the last few steps of a curve, ``0.0195 (1), 0.0167 (12)``."""
    steps = [f"{milliseconds(seconds)} ({trials:.0f})" for trials, _, seconds in best]
    return ", ".join(steps if len(steps) <= MOST_STEPS else ["...", *steps[-MOST_STEPS:]])


def _rate(layer: Mapping[str, Any]) -> str:
    time_s, macs = layer.get("latency_s"), layer.get("macs")
    return amount(macs / time_s) if time_s and macs else MISSING
