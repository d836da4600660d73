"""``dlas show``: one row in full."""

from __future__ import annotations

import math
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import cast

from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from dlas.analysis.against.versions import every_row
from dlas.face.tables.columns import maybe
from dlas.face.tables.layers import grids
from dlas.face.tables.marks import COLOURS
from dlas.stack import PART_AXES
from dlas.sweep.rows import intervals
from dlas.sweep.rows.finding import find
from dlas.sweep.rows.labels import (
    MISSING,
    amount,
    duration,
    flat,
    interval_ms,
    label,
    milliseconds,
    number_of,
    short_id,
    times_as_fast,
)
from dlas.sweep.rows.results import UNSTABLE, Row
from dlas.sweep.rows.schema import CompiledAccuracy, ImportSource

UNITS = {"s": "s", "bytes": "B", "hz": "Hz", "j": "J", "w": "W"}
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
    pieces: list[RenderableType] = [_heading(row), indented(side_by_side(_asked(row)))]
    log = Path(folder) / "logs" / f"{row.id}.log"
    sections = {
        "what happened": dict(_happened(row, log)) | _earlier(Path(folder), row),
        "network": dict(_network(row)),
        "device": dict(_amounts(row.device)),
        "environment": dict(_amounts(row.environment)),
        "measured with": dict(_amounts(row.measure)),
        "artifacts": dict(_amounts(row.artifacts)),
    }
    for title, facts in sections.items():
        if facts:
            pieces += [Text(title, style="bold"), indented(side_by_side(facts))]
        if title == "network":
            pieces += [piece for grid in grids(folder, row) for piece in (grid, Text())]
    return Group(*pieces)


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
    means = "; its times are no result" if row.status == UNSTABLE else ""
    yield "status", row.status + (f" in step {row.step}" if row.step else "") + means
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
    if row.other_round:
        other = row.other_round
        median_s, why = other.get("latency_s"), other.get("reason")
        time = "no time" if median_s is None else f"{milliseconds(median_s)} ms"
        yield "other round", f"{time}, {other.get('started')}" + (f": {why}" if why else "")
    for name, share in (("load", row.load), ("steal", row.steal)):
        if share is not None:
            yield name, f"{share:.3g}"
    if row.addresses:
        yield "addresses", row.addresses
    if row.sentinel_s:
        yield "sentinel", f"{milliseconds(min(row.sentinel_s))} to {milliseconds(max(row.sentinel_s))} ms"
    clocks = (row.clock_low_hz, row.clock_mean_hz, row.clock_high_hz)
    if known := [amount(hertz, "Hz") for hertz in clocks if hertz is not None]:
        yield "clocks", ", ".join(known) + " (lowest, mean, highest)"
    gpu = (row.gpu_clock_mean_hz, row.gpu_memory_clock_mean_hz)
    if known := [amount(hertz, "Hz") for hertz in gpu if hertz is not None]:
        yield "clocks of the GPU", " and memory ".join(known) + " (mean)"
    if row.temperature_c is not None:
        yield "temperature", f"{row.temperature_c:.1f} °C at most"
    if row.throttled is not None:
        yield "throttled", (row.throttled_reason or "yes") if row.throttled else "no"
    yield from _costs(row)


def _earlier(folder: Path, row: Row) -> dict[str, str]:
    """Return that the folder holds earlier rows of the point with other keys, if it does."""
    keys = dict.fromkeys(other.key for other in every_row(folder, [row.id]) if other.key != row.key)
    command = f"`dlas show {folder} {short_id(row.id)} --against {folder}` says what differs"
    return {"earlier": f"{number_of(len(keys), 'row')} with another key; {command}"} if keys else {}


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


def _origin(imported: ImportSource) -> str:
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
    if row.page_faults is not None:
        yield "page faults", f"{row.page_faults:,.1f} an inference or training step"


def _power(row: Row) -> Iterator[tuple[str, str]]:
    """Yield energy and power, and how sure that is."""
    if row.energy_j is not None:
        yield "energy", amount(row.energy_j, "J")
    if row.power_w is not None:
        idle = "" if row.idle_power_w is None else f", {amount(row.idle_power_w, 'W')} of it when idle"
        yield "power", amount(row.power_w, "W") + idle
    if row.power_rails_w:
        yield "rails", ", ".join(f"{rail} {amount(watts, 'W')}" for rail, watts in row.power_rails_w.items())
    if row.power_readings is not None:
        missing = f", {row.power_missing:,} of them missing" if row.power_missing else ""
        drift = "" if row.power_drift is None else f"; the last third {row.power_drift:+.1%} from the first"
        yield "readings", f"{row.power_readings:,} of {row.power_sensor}{missing}{drift}"
    if row.power_note:
        yield "power note", row.power_note


def _clocks(row: Row) -> Iterator[tuple[str, str]]:
    """Yield the clocks that were asked for, with what ran."""
    for name, clock in row.clocks.items():
        ran = maybe(clock["observed_hz"] or clock["applied_hz"], lambda hz: amount(hz, "Hz"))
        yield f"{name} clock", f"{ran} of {amount(clock['requested_hz'], 'Hz')} asked for"
    if row.clocks_note:
        yield "clocks note", row.clocks_note


def _costs(row: Row) -> Iterator[tuple[str, str]]:
    if row.error is not None:
        yield "error", f"{row.error:.3g} of the largest output"
    yield from _memory(row)
    yield from _power(row)
    yield from _clocks(row)
    if row.library_bytes is not None:
        yield "library", amount(row.library_bytes, "B")
    if row.coverage:
        yield "coverage", ", ".join(f"{value:.1%} of {name}" for name, value in row.coverage.items())
    if row.tuning:
        told = [
            maybe(row.tuning.get("trials"), lambda count: f"{count:,} trials"),
            maybe(row.tuning.get("valid"), lambda count: f"{count:,} of them valid"),
            maybe(row.tuning.get("seconds"), lambda time_s: f"{duration(time_s)} when they were made"),
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


def _amounts(mapping: Mapping[str, object], prefix: str = "") -> Iterator[tuple[str, str]]:
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


def indented(renderable: RenderableType) -> Padding:
    """Return what stands below a heading, with an empty line after it."""
    return Padding(renderable, (0, 0, 1, 2), expand=False)


def side_by_side(facts: Mapping[str, str]) -> Table:
    """Return names and values side by side."""
    table = Table.grid(padding=(0, 2))
    table.add_column(style="dim", no_wrap=True)
    table.add_column(overflow="fold")
    for name, value in facts.items():
        table.add_row(name, Text(value))
    return table
