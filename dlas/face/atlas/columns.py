"""What the atlas shows of a row: its columns, their titles, and how a reader filters by each."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from dlas.sweep.rows.labels import shown_in

Filter = Literal["values", "range", ""]
"""Boxes to tick, one for each value; the least and the most; or none."""


@dataclass(frozen=True)
class AtlasColumn:
    """A column of the page."""

    name: str
    """As in the table that :func:`dlas.read` returns, and in the CSV that the page writes."""
    title: str
    unit: str = ""
    factor: float = 1.0
    """From the row's unit to this one."""
    number: bool = False
    filter: Filter = ""
    width: float = 0.0
    """Of the table's column, in rem; 0 for what only a row's details and the CSV have."""


def _text(name: str, title: str = "", filter: Filter = "", width: float = 0.0) -> AtlasColumn:
    return AtlasColumn(name, title or name.replace("_", " "), filter=filter, width=width)


def _number(name: str, title: str = "", filter: Filter = "", width: float = 0.0) -> AtlasColumn:
    words, unit, factor = shown_in(name)
    return AtlasColumn(name, title or words, unit, factor, True, filter, width)


def _share(name: str, title: str = "", filter: Filter = "", width: float = 0.0) -> AtlasColumn:
    return AtlasColumn(name, title or name.replace("_", " "), "%", 100.0, True, filter, width)


def _millions(name: str, title: str) -> AtlasColumn:
    return AtlasColumn(name, title, "M", 1e-6, number=True)


COLUMNS = (
    _text("model", "network", "values", 10.5),
    _text("compression", "", "values", 11),
    _text("algorithm", "", "values", 7.5),
    _text("compiler", "", "values", 7.5),
    _text("status", "", "values", 8),
    _number("latency_s", "", "range", 13),
    _number("latency_low_s", "latency, low end of its interval"),
    _number("latency_high_s", "latency, high end of its interval"),
    _number("latency_min_s", "shortest sample"),
    _number("samples"),
    _share("accuracy", "", "range", 7.5),
    _share("compiled_accuracy", "accuracy of the build"),
    _number("peak_memory_bytes", "peak memory", "range", 8.5),
    _number("energy_j", "", "range", 7.5),
    AtlasColumn("power_w", "power", "W", number=True),
    _number("model_bytes", "size", "range", 6),
    _text("batch", "", "values", 4.5),
    _text("hardware", "", "values", 10),
    _text("machine", "", "values", 13),
    _text("instance"),
    _text("threads", "", "values"),
    _text("dataset", "data set", "values", 10),
    _text("task", "", "values", 6.5),
    _text("study", "", "values", 10),
    _text("reason", "reason of a failure", "values"),
    _text("step", "ended in step", "values"),
    _text("noisy_reason", "disturbed"),
    _number("error"),
    _share("ratio", "weights removed", "range"),
    AtlasColumn("bits", "bits of a value", number=True),
    _share("coverage"),
    _millions("macs", "multiply-adds"),
    _millions("effective_macs", "multiply-adds with a weight that is not zero"),
    _millions("parameters", "parameters"),
    _number("trials", "tuner's trials"),
    AtlasColumn("search_s", "tuner's search", "s", number=True),
    AtlasColumn("build_s", "building", "s", number=True),
    _text("seed"),
    _text("started"),
    _text("folder", "", "values"),
    _text("id"),
)
"""In the order of the page."""
