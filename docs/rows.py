"""Write ``docs/rows.md`` from the docstrings of :mod:`dlas.sweep.rows`: ``python -m docs.rows``.

Run from the root of the repository.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import is_typeddict

from dlas.stack import Computation, Layer, Operator, ScheduleChoice
from dlas.sweep.rows import results, schema
from dlas.sweep.rows.files import PACKED_FILE
from dlas.sweep.rows.results import Row

PAGE = Path(__file__).with_suffix(".md")
GROUPS = {
    "The point": "study dataset model compression algorithm compiler hardware batch task seed measure",
    "Its result": "id status reason step started seconds waited cached",
    "Times": "latency_s calls_per_sample bound first_run_s cpu_s energy_j",
    "Disturbances": (
        "noisy noisy_reason unstable unstable_reason other_round load steal sentinel_s"
        " clock_low_hz clock_mean_hz clock_high_hz"
    ),
    "The network": (
        "accuracy validation_accuracy test_images note reached expected_speedup parameters nonzeros macs"
        " effective_macs model_bytes csr_bytes"
    ),
    "The build": "error compiled_accuracy coverage layers edges tuning library_bytes packed_bytes",
    "Memory": "peak_memory_bytes loading_memory_bytes memory_note resident_bytes",
    "Provenance": "device environment artifacts imported key schema",
}
"""Fields by heading."""
TAKEN: dict[type, tuple[type, ...]] = {Layer: (Operator, Computation, ScheduleChoice)}
"""The types whose fields others have, too: types of mappings do not tell what they inherit from."""
ABOVE = f"""\
# The fields of a row

<!-- Written by `python -m docs.rows` from dlas/sweep/rows/ and dlas/stack/layer.py. -->

`dlas run STUDY --out FOLDER` appends one row a point to `FOLDER/{results.FILE}`: one JSON object a line,
{{count}} fields, never edited. Where an id occurs twice, because the point ran again, the last row counts.
Every command reads a packed file, `FOLDER/{PACKED_FILE}`, likewise; `dlas run` adds nothing to it.
Rows of one id in several folders are repeats of their point: `dlas.read` gives each of them.

- Units are SI: the suffixes `_s`, `_bytes`, `_hz` and `_j` name them.
- Samples are stored and statistics derived: `dlas.read(folder)` gives a table with medians and intervals.
- Shares and accuracies are fractions: 0.93 is 93 %.
- A quantity is `null` where the point ended before it was known: a point that failed in its build has no
  latency. The column "null" names other reasons.
"""
NESTED = "\n## Mappings inside a row\n"


@dataclass(frozen=True)
class Entry:
    """A field's type, unit, meaning and reasons for null, from a docstring."""

    name: str
    kind: str
    unit: str
    meaning: str
    null: str


def main() -> None:
    """Write the page beside this file."""
    PAGE.write_text(page(), encoding="utf-8")


def page() -> str:
    """Return the page: a table for each group of fields, then one for each nested mapping."""
    fields = {entry.name: entry for entry in entries(Row)}
    lines = [ABOVE.format(count=len(fields))]
    for heading, names in GROUPS.items():
        lines += [f"\n## {heading}", "", *_table([fields[name] for name in names.split()])]
    lines.append(NESTED)
    for kind in mappings():
        about = inspect.getdoc(kind) or ""
        lead = " ".join(about.partition("\n\nAttributes\n")[0].split())
        lines += [f"\n### {kind.__name__}\n\n{lead}", "", *_table(entries(kind))]
    return "\n".join(line.rstrip("\n") for line in lines) + "\n"


def mappings() -> list[type]:
    """Return the types of the mappings inside a row."""
    return [kind for kind in vars(schema).values() if is_typeddict(kind)]


def entries(kind: type) -> list[Entry]:
    """Return the fields in the docstring of a class and of those that it takes fields from."""
    found = []
    for part in (*TAKEN.get(kind, ()), kind):
        listed = re.split(r"\n(?:Parameters|Attributes)\n-+\n", inspect.getdoc(part) or "")[1]
        found += [entry for piece in re.split(r"\n(?=\S)", listed) for entry in _parsed(piece)]
    return found


def _parsed(piece: str) -> Iterator[Entry]:
    """Yield the fields of one entry: ``name, name : kind, unit`` and the lines below it."""
    head, _, text = piece.partition("\n")
    names, _, kind = head.partition(" : ")
    # A set of values has commas of its own.
    kind, _, unit = (kind, "", "") if kind.startswith("{") else kind.partition(", ")
    meaning, _, null = " ".join(text.split()).partition(" Null")
    for name in names.split(", "):
        yield Entry(name, kind, unit, meaning, null.lstrip(": ").rstrip("."))


def _table(fields: list[Entry]) -> list[str]:
    lines = ["| field | type | unit | what it is | null |", "|---|---|---|---|---|"]
    for entry in fields:
        lines.append(
            f"| `{entry.name}` | {_kind(entry.kind)} | {entry.unit} | {entry.meaning} | {entry.null} |"
        )
    return [line.replace("  |", " |").replace("``", "`") for line in lines]


def _kind(kind: str) -> str:
    """Return a type as it reads in JSON, a mapping's name linked to its table."""
    if kind.startswith("{"):
        return ", ".join(f"`{value}`" for value in re.findall(r'"(\w+)"', kind))
    words = {"float": "number", "int": "integer", "str": "text", "bool": "true or false"}
    links = {mapping.__name__: f"[{mapping.__name__}](#{mapping.__name__.lower()})" for mapping in mappings()}
    return " ".join((words | links).get(word, word) for word in kind.split())


if __name__ == "__main__":
    main()
