"""``dlas show``: one row in full."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar, cast

from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from dlas.face.console.cells import COLOURS, GridCell, GridColumn, names
from dlas.face.console.grid import Grid
from dlas.stack import PART_AXES
from dlas.sweep.rows import intervals
from dlas.sweep.rows.finding import find
from dlas.sweep.rows.labels import (
    MISSING,
    amount,
    convolution,
    duration,
    flat,
    interval_ms,
    label,
    milliseconds,
    shortened,
    times_as_fast,
)
from dlas.sweep.rows.layer_times import compared_sums, profile
from dlas.sweep.rows.operators import Kind, kinds
from dlas.sweep.rows.results import CURVES, Row
from dlas.sweep.rows.schema import CompiledAccuracy, Imported

Value = TypeVar("Value")
MOST_STEPS = 5
UNITS = {"s": "s", "bytes": "B", "hz": "Hz", "j": "J"}
"""Units by the last word of a key."""


def show(folder: str | os.PathLike[str], prefix: str) -> RenderableType:
    """Return one row in full, to be printed.

    Parameters
    ----------
    folder : path
        What ``dlas run --out`` wrote.
    prefix : str
        The row's id, or the beginning of it.

    Raises
    ------
    InputError
        If no row, or more than one, has an id that begins with it.
    """
    row = find(Path(folder), prefix)
    pieces: list[RenderableType] = [_heading(row), _indented(_facts(_asked(row)))]
    log = Path(folder) / "logs" / f"{row.id}.log"
    sections = {
        "what happened": dict(_happened(row, log)),
        "network": dict(_network(row)),
        "device": dict(_amounts(row.device)),
        "environment": dict(_amounts(row.environment)),
        "measured with": dict(_amounts(row.measure)),
        "artifacts": dict(_amounts(row.artifacts)),
    }
    for title, facts in sections.items():
        if facts:
            pieces += [Text(title, style="bold"), _indented(_facts(facts))]
        if title == "network":
            pieces += [piece for grid in _grids(folder, row) for piece in (grid, Text())]
    return Group(*pieces)


def _grids(folder: str | os.PathLike[str], row: Row) -> Iterator[Grid]:
    """Yield the tables of a network: its compression, its layers, its tuning."""
    if curve := _list(row.reached, "curve"):
        yield _compressed(curve)
    if found := kinds(row):
        yield _kinds(found)
    if row.layers or _shares(row):
        yield _layers(row)
    if row.layers and row.tuning:
        yield _curves(folder, row)


def _heading(row: Row) -> Text:
    return Text.assemble((row.id, "bold"), f"  {row.study}  ", (row.status, f"bold {COLOURS[row.status]}"))


def _asked(row: Row) -> dict[str, str]:
    return {axis: label(getattr(row, axis)) for axis in PART_AXES} | {
        "batch": str(row.batch),
        "task": row.task,
        "seed": str(row.seed),
    }


def _happened(row: Row, log: Path) -> Iterator[tuple[str, str]]:
    """Yield status, reason, times and disturbances."""
    yield "status", row.status + (f" in step {row.step}" if row.step else "")
    if row.reason:
        yield "reason", row.reason
    if row.imported:
        yield "imported", _origin(row.imported)
    else:
        yield "log", str(log) if log.exists() else f"{log} (not there)"
    yield from _times(row)
    if row.first_run_s is not None:
        yield "first run", f"{milliseconds(row.first_run_s)} ms"
    if row.cpu_s is not None:
        yield "processor time", f"{milliseconds(row.cpu_s)} ms, all threads together"
    if row.noisy is not None:
        yield "noisy", (row.noisy_reason or "yes") if row.noisy else "no"
    if row.unstable:
        yield "unstable", f"{row.unstable_reason or 'yes'}; its times are no result"
    if row.other_round:
        other = row.other_round
        median_s, why = other.get("latency_s"), other.get("reason")
        time = "no time" if median_s is None else f"{milliseconds(median_s)} ms"
        yield "other round", f"{time}, {other.get('started')}" + (f": {why}" if why else "")
    for name, share in (("load", row.load), ("steal", row.steal)):
        if share is not None:
            yield name, f"{share:.3g}"
    if row.sentinel_s:
        yield "sentinel", f"{milliseconds(min(row.sentinel_s))} to {milliseconds(max(row.sentinel_s))} ms"
    clocks = (row.clock_low_hz, row.clock_mean_hz, row.clock_high_hz)
    if known := [amount(hertz, "Hz") for hertz in clocks if hertz is not None]:
        yield "clocks", ", ".join(known) + " (lowest, mean, highest)"
    yield from _costs(row)


def _times(row: Row) -> Iterator[tuple[str, str]]:
    """Yield the latency and what is known of its samples: of an imported row, what its file says."""
    if not row.latency_s:
        return
    said = (row.imported or {}).get("derived", {})
    median, low, high = intervals.median(row.latency_s)
    low, high = said.get("latency_low_s", low), said.get("latency_high_s", high)
    if row.imported and low == high:
        yield "latency", f"{milliseconds(median)} ms"
    else:
        yield "latency", f"{interval_ms(median, low, high)} ms (median, 95 % interval)"
    count = said.get("samples", len(row.latency_s))
    calls = f" of {row.calls_per_sample} calls" if (row.calls_per_sample or 1) > 1 else ""
    bound = f", ended by {row.bound}" if row.bound else ""
    extremes = f", {milliseconds(min(row.latency_s))} to {milliseconds(max(row.latency_s))} ms"
    if count == len(row.latency_s) and not (row.imported and count == 1):
        yield "samples", f"{count}{calls}{extremes}{bound}"
    elif count > 1:
        yield "samples", f"{count}{calls}{bound}; the samples themselves were not imported"


def _origin(imported: Imported) -> str:
    """Return the file that a row was imported from, and where in it the row stands."""
    line, row = imported.get("line"), imported.get("row")
    place = f", line {line:,}" if line else f", row {row:,}" if row else ""
    return f"from {imported.get('file')}{place} (SHA-256 {imported.get('sha256')})"


def _memory(row: Row) -> Iterator[tuple[str, str]]:
    if row.peak_memory_bytes is not None:
        loading = row.loading_memory_bytes
        before = "" if loading is None else f", {amount(loading, 'B')} while it was loaded"
        yield "peak memory", amount(row.peak_memory_bytes, "B") + before
    if row.memory_note:
        yield "memory note", row.memory_note
    if row.resident_bytes is not None:
        yield "resident", f"{amount(row.resident_bytes, 'B')} added to the timed process"


def _costs(row: Row) -> Iterator[tuple[str, str]]:
    if row.error is not None:
        yield "error", f"{row.error:.3g} of the largest output"
    yield from _memory(row)
    if row.energy_j is not None:
        yield "energy", amount(row.energy_j, "J")
    if row.library_bytes is not None:
        yield "library", amount(row.library_bytes, "B")
    if row.coverage:
        yield "coverage", ", ".join(f"{value:.1%} of {name}" for name, value in row.coverage.items())
    if row.tuning:
        told = [
            _maybe(row.tuning.get("trials"), lambda count: f"{count:,} trials"),
            _maybe(row.tuning.get("valid"), lambda count: f"{count:,} of them valid"),
            _maybe(row.tuning.get("seconds"), lambda time_s: f"{duration(time_s)} when they were made"),
        ]
        yield "search", ", ".join(text for text in told if text != MISSING)
    for what, seconds in (("took", row.seconds), ("waited", row.waited), ("in the cache", row.cached)):
        times = cast(Mapping[str, float], seconds)
        if shown := [f"{step} {duration(time_s)}" for step, time_s in times.items() if time_s]:
            yield what, ", ".join(shown)
    if row.started:
        yield "started", row.started


def _network(row: Row) -> Iterator[tuple[str, str]]:
    """Yield the network's accuracy, size and compression."""
    for name, accuracy in (("accuracy", row.accuracy), ("validation", row.validation_accuracy)):
        if accuracy is not None:
            yield name, f"{accuracy:.2%}"
    if row.compiled_accuracy:
        share, low, high = (row.compiled_accuracy.get(key, math.nan) for key in ("accuracy", "low", "high"))
        images = row.compiled_accuracy.get("images", "?")
        yield "compiled", f"{share:.2%} [{low:.2%}, {high:.2%}] of {images} images"
        if "agreement" in row.compiled_accuracy:
            yield "agreement", _agreement(row.compiled_accuracy)
    if row.note:
        yield "note", row.note
    for name, count, unit in (
        ("parameters", row.parameters, ""),
        ("nonzeros", row.nonzeros, ""),
        ("MACs", row.macs, ""),
        ("effective MACs", row.effective_macs, ""),
        ("size", row.model_bytes, "B"),
        ("size as packed", row.packed_bytes, "B"),
        ("size as CSR", row.csr_bytes, "B"),
    ):
        if count is not None:
            yield name, f"{amount(count, unit)} ({count:,})"
    if row.expected_speedup is not None:
        yield "expected", f"{times_as_fast(row.expected_speedup)} by compression alone"
    reached = {name: value for name, value in (row.reached or {}).items() if name not in ("curve", "layers")}
    for name, pruned in (("ratio", "of the weights"), ("units", "of what the technique prunes")):
        if isinstance(reached.get(name), int | float):
            yield f"reached.{name}", f"{reached.pop(name):.2%} {pruned}"
    yield from _amounts(reached, "reached")


def _agreement(accuracy: CompiledAccuracy) -> str:
    """Return how often a build and its network give the same class, and how far their accuracies differ."""
    told = cast(Mapping[str, float], accuracy)
    share, low, high = (told.get(f"agreement{end}", math.nan) for end in ("", "_low", "_high"))
    apart = [told.get(f"difference{end}", math.nan) for end in ("", "_low", "_high")]
    points, least, most = (f"{100 * value:+.2f}" for value in apart)
    return (
        f"{share:.2%} [{low:.2%}, {high:.2%}] of the classes are the network's; "
        f"its accuracy differs by {points} [{least}, {most}] points"
    )


def _compressed(curve: Sequence[Mapping[str, Any]]) -> Grid:
    """Return the levels of a pruning with their shares pruned, accuracies and times."""
    columns = [
        _column("level", [_maybe(step.get("level"), _decimal) for step in curve]),
        _column("pruned", [_maybe(step.get("ratio"), _percent) for step in curve]),
        _column("before", [_maybe(step.get("accuracy_before"), _percent) for step in curve]),
        _column("accuracy", [_maybe(step.get("accuracy"), _percent) for step in curve]),
        _column("validation", [_maybe(step.get("validation_accuracy"), _percent) for step in curve], drop=1),
        _column("epochs", [_maybe(step.get("epochs"), str) for step in curve], drop=2),
        _column("took", [_maybe(step.get("seconds"), duration) for step in curve], drop=2),
    ]
    total = sum(step.get("seconds") or 0 for step in curve)
    above = Text("compression", style="bold").append(
        f": {len(curve) - 1} levels in {duration(total)}; accuracy before and after fine-tuning",
        style="not bold",
    )
    return Grid([column for column in columns if _has_values(column)], above=[above])


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
        _column("layers", [str(kind.count) for kind in found]),
        _column("ms", [milliseconds(kind.latency_s) for kind in found]),
        _column("share", [f"{kind.latency_s / total:.1%}" if total else MISSING for kind in found]),
        _column("backward ms", [_maybe(kind.backward_s, milliseconds) for kind in found]),
    ]
    above = Text("operators", style="bold").append(f": {len(found)} kinds by time", style="not bold")
    return Grid([column for column in columns if _has_values(column)], above=[above])


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
        _column("ms", [_maybe(layer.get("latency_s"), milliseconds) for layer in layers]),
        _column(
            "share", [_maybe(layer.get("latency_s"), lambda time: f"{time / total:.1%}") for layer in layers]
        ),
        names("algorithm", [_algorithm(layer) for layer in layers]),
        _column("convolution", [convolution(layer) for layer in layers], drop=1),
        _column("schedule", [_schedule(layer) for layer in layers], drop=2),
        _column("MACs", [_maybe(layer.get("macs"), amount) for layer in layers], drop=2),
        _column("pruned", [_maybe(shares.get(str(layer.get("name"))), _percent) for layer in layers], drop=2),
        _column("nonzeros", [_maybe(layer.get("nonzeros"), amount) for layer in layers], drop=4),
        _column("MAC/s", [_rate(layer) for layer in layers], drop=3),
    ]
    columns = [column for column in columns if _has_values(column)]
    above = [Text("layers", style="bold").append(f": {len(layers)}", style="not bold")]
    if profiled:
        timed = sum(time is not None for time in profiled.seconds)
        above[0].append(f", {timed} timed: {compared_sums(profiled.profiled_s, profiled.latency_s)}")
        above.append(Text(f"ms: {profiled.correction}; together {milliseconds(total)} ms"))
    return Grid(columns, above=above)


def _column(header: str, texts: list[str], drop: int = 0) -> GridColumn:
    return GridColumn(GridCell(header), [GridCell(text) for text in texts], drop=drop)


def _has_values(column: GridColumn) -> bool:
    return any(cell.text not in (MISSING, "") for cell in column.cells)


def _maybe(value: Value | None, shown: Callable[[Value], object]) -> str:
    return MISSING if value is None else str(shown(value))


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
            _column("trials", [str(curve["trials"]) for curve in curves]),
            _column("minimal ms", [_maybe(curve["minimal_s"], milliseconds) for curve in curves]),
            _column("best ms", [milliseconds(curve["best"][-1][2]) for curve in curves]),
            names("best ms after so many trials", [_steps(curve["best"]) for curve in curves]),
        ]
    except (OSError, ValueError, KeyError, TypeError, IndexError):
        return Grid([], above=[Text("tuning", style="bold").append(": its curves are not there")])
    return Grid(columns, above=[Text("tuning", style="bold").append(f": {len(curves)} workloads")])


def _steps(best: Sequence[Sequence[float]]) -> str:
    """Return the last few steps of a curve, ``0.0195 (1), 0.0167 (12)``."""
    steps = [f"{milliseconds(seconds)} ({trials:.0f})" for trials, _, seconds in best]
    return ", ".join(steps if len(steps) <= MOST_STEPS else ["...", *steps[-MOST_STEPS:]])


def _rate(layer: Mapping[str, Any]) -> str:
    time_s, macs = layer.get("latency_s"), layer.get("macs")
    return amount(macs / time_s) if time_s and macs else MISSING


def _amounts(mapping: object, prefix: str = "") -> Iterator[tuple[str, str]]:
    """Yield the values of a nested mapping with their units, by their keys joined by dots."""
    for name, value in flat(mapping, prefix):
        yield name, _worded(name.rpartition(".")[2], value)


def _worded(key: str, value: object) -> str:
    unit = UNITS.get(key.rpartition("_")[2])
    if unit and isinstance(value, int | float) and not isinstance(value, bool):
        return duration(value) if unit == "s" else amount(value, unit)
    if isinstance(value, list):
        return ", ".join(map(str, value))
    return f"{value:.6g}" if isinstance(value, float) else str(value)


def _indented(renderable: RenderableType) -> Padding:
    return Padding(renderable, (0, 0, 1, 2), expand=False)


def _facts(facts: Mapping[str, str]) -> Table:
    """Return names and values side by side."""
    table = Table.grid(padding=(0, 2))
    table.add_column(style="dim", no_wrap=True)
    table.add_column(overflow="fold")
    for name, value in facts.items():
        table.add_row(name, Text(value))
    return table
