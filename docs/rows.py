"""Write ``docs/reference/rows.md`` from the fields of :mod:`dlas.sweep.rows`: ``python -m docs.rows``.

Run from the root of the repository.
"""

from __future__ import annotations

import inspect
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import NoneType, UnionType
from typing import (
    Annotated,
    Any,
    ClassVar,
    Literal,
    NotRequired,
    Required,
    Union,
    get_args,
    get_origin,
    get_type_hints,
    is_typeddict,
)

from dlas.stack import ClockReading, Computation, Layer, Operator, ScheduleChoice
from dlas.sweep.rows import results, schema
from dlas.sweep.rows.files import PACKED_FILE
from dlas.sweep.rows.results import Row
from dlas.sweep.study.outlines import class_meanings

PAGE = Path(__file__).parent / "reference/rows.md"
GROUPS = {
    "The point": "study dataset model compression algorithm compiler hardware batch task seed measure",
    "Its result": "id status reason step started seconds waited cached",
    "Times": "latency_s slice_samples calls_per_sample bound first_run_s cpu_s",
    "Energy and power": (
        "energy_j power_w power_rails_w idle_power_w power_sensor power_readings power_missing power_drift"
        " power_note"
    ),
    "Counts": "instructions cycles cache_misses counter kernel_instructions count_note",
    "Disturbances": (
        "noisy noisy_reason other_round load steal sentinel_s addresses"
        " clocks clocks_note clock_low_hz clock_mean_hz clock_high_hz"
        " gpu_clock_mean_hz gpu_memory_clock_mean_hz"
        " temperature_c throttled throttled_reason"
    ),
    "The network": (
        "accuracy validation_accuracy test_images note reached expected_speedup parameters nonzeros macs"
        " effective_macs model_bytes csr_bytes"
    ),
    "The build": "error compiled_accuracy coverage layers edges tuning library_bytes packed_bytes",
    "Memory": "peak_memory_bytes loading_memory_bytes memory_note resident_bytes page_faults",
    "Provenance": "device environment sources artifacts imported key schema",
}
"""Fields by heading."""
ABOVE = f"""\
# The fields of a row

<!-- Written by `python -m docs.rows` from dlas/sweep/rows/ and dlas/stack/layer.py. -->

`dlas run STUDY --out FOLDER` appends one row a point to `FOLDER/{results.FILE}`: one JSON object a line,
{{count}} fields, never edited. Where an id occurs twice, because the point ran again, the last row counts.
Every command reads a packed file, `FOLDER/{PACKED_FILE}`, likewise; `dlas run` adds nothing to it.
Rows of one id in several folders are repeats of their point: `dlas.read` gives each of them.

- Units are SI: the suffixes `_s`, `_bytes`, `_hz`, `_j` and `_w` name them; `_c` is °C.
- Samples are stored and statistics derived: `dlas.read(folder)` gives a table with medians and intervals.
- Shares and accuracies are fractions: 0.93 is 93 %.
- A quantity is `null` where the point ended before it was known: a point that failed in its build has no
  latency. The column "null" names other reasons.
"""
EXTENDED: dict[type, tuple[type, ...]] = {Layer: (Computation, Operator, ScheduleChoice)}
"""What types of mappings extend: at run time they do not tell."""
UNITS = {"s": "s", "seconds": "s", "bytes": "B", "hz": "Hz", "j": "J", "w": "W", "c": "°C"}
"""Units by the suffix of a field's name."""
WORDS = {float: "number", int: "integer", str: "text", bool: "true or false"}
NESTED = "\n## Mappings inside a row\n"


@dataclass(frozen=True)
class Entry:
    """A field: its type, unit, meaning and reasons for null."""

    name: str
    kind: str
    unit: str
    meaning: str
    null: str


def main() -> None:
    """Write the page."""
    PAGE.write_text(page(), encoding="utf-8")


def page() -> str:
    """Return the page: a table for each group of fields, then one for each nested mapping."""
    fields = {entry.name: entry for entry in entries(Row)}
    lines = [ABOVE.format(count=len(fields))]
    for heading, names in GROUPS.items():
        lines += [f"\n## {heading}", "", *_table([fields[name] for name in names.split()])]
    lines.append(NESTED)
    for kind in mappings():
        lead = " ".join((inspect.getdoc(kind) or "").split())
        lines += [f"\n### {kind.__name__}\n\n{lead}", "", *_table(entries(kind))]
    return "\n".join(line.rstrip("\n") for line in lines) + "\n"


def mappings() -> list[type]:
    """Return the types of the mappings inside a row."""
    return [*(kind for kind in vars(schema).values() if is_typeddict(kind)), ClockReading]


def entries(kind: type) -> list[Entry]:
    """Return the fields of a class: their types from annotations, the rest from what stands behind them."""
    said = _said(kind)
    found = []
    for name, hint in get_type_hints(kind).items():
        if get_origin(hint) is not ClassVar:
            meaning, _, null = said.get(name, "").partition(" Null")
            meaning, _, unit = meaning.partition("; in ")
            unit, null = unit.rstrip(".") or _unit(name, hint), null.lstrip(": ").rstrip(".")
            found.append(Entry(name, _kind(hint), unit, f"{meaning.rstrip('.')}.", null))
    return found


def _said(kind: type) -> dict[str, str]:
    """Return what stands behind the fields of a class, and of those that it extends."""
    return {
        name: text for each in (*EXTENDED.get(kind, ()), kind) for name, text in class_meanings(each).items()
    }


def _unit(name: str, hint: Any) -> str:
    """Return the unit of a number that its name has as a suffix; a letter alone is an extent of a layer."""
    number = any(word in _kind(hint) for word in ("number", "integer"))
    return UNITS.get(name.rpartition("_")[2], "") if number and len(name) > 1 else ""


def _table(fields: list[Entry]) -> list[str]:
    lines = ["| field | type | unit | what it is | null |", "|---|---|---|---|---|"]
    for entry in fields:
        lines.append(f"| `{entry.name}` | {entry.kind} | {entry.unit} | {entry.meaning} | {entry.null} |")
    return [line.replace("  |", " |").replace("``", "`") for line in lines]


def _kind(hint: Any) -> str:
    """Return a type as it reads in JSON, a mapping's name linked to its table."""
    origin, arguments = get_origin(hint), [each for each in get_args(hint) if each is not NoneType]
    if origin in (Union, UnionType):
        return ", or ".join(map(_kind, arguments))
    if origin in (Annotated, NotRequired, Required):
        return _kind(arguments[0])
    if origin is Literal:
        return ", ".join(f"`{value}`" for value in arguments)
    if origin in (list, Sequence):
        return f"list of {_kind(arguments[0])}"
    if origin in (dict, Mapping) and arguments[1] is not Any:
        return f"mapping of {_kind(arguments[0])} to {_kind(arguments[1])}"
    if origin is tuple:
        return f"({', '.join(map(_kind, arguments))})"
    if is_typeddict(hint):
        return f"[{hint.__name__}](#{hint.__name__.lower()})"
    return WORDS.get(hint, "mapping")


if __name__ == "__main__":
    main()
