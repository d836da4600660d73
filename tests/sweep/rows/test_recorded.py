"""A results folder of version 0.1.0, from before its modules moved, reads and prints as it did then."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import dlas
from dlas.sweep.rows.columns import AGREEMENTS, CACHED, CLOCKS, DIFFERENCES, WAITS
from dlas.sweep.rows.results import read_rows
from dlas.sweep.study.study import Study
from tests.fixtures.commands import Command

RECORDED = Path(__file__).parent / "recorded"
LATER = {
    **{"packed_bytes": "Int64", "machine_id": "string"},
    **dict.fromkeys((*WAITS, *CACHED), "float64"),
    "task": "string",
    **{"memory_s": "float64", "resident_bytes": "Int64", "loading_memory_bytes": "Int64"},
    **{"memory_note": "string", "latency_min_s": "float64", "instance": "string"},
    **dict.fromkeys(("cpu_s", "page_faults", *CLOCKS, *AGREEMENTS, *DIFFERENCES), "float64"),
    **dict.fromkeys(("instructions", "cycles", "cache_misses", "count_s"), "float64"),
    **{"counter": "string", "count_note": "string"},
    **dict.fromkeys(("power_w", "idle_power_w", "power_drift", "temperature_c"), "float64"),
    **dict.fromkeys(("power_readings", "power_missing"), "Int64"),
    **dict.fromkeys(("power_sensor", "power_note", "throttled_reason"), "string"),
    "throttled": "boolean",
}
"""Columns that version 0.1.0 did not have."""


def test_its_table_has_the_columns_that_it_had_and_nothing_in_those_added_later() -> None:
    frame = dlas.read(RECORDED)
    columns = json.loads((RECORDED / "columns.json").read_text())
    assert not LATER.keys() & columns.keys()
    assert {name: str(dtype) for name, dtype in frame.dtypes.items()} == columns | LATER
    known = ("machine_id", "task", "resident_bytes", "latency_min_s")
    assert frame[[name for name in LATER if name not in known]].isna().all(axis=None)
    assert frame["peak_memory_bytes"].isna().all() and frame["resident_bytes"].notna().any()
    assert set(frame["task"]) == {"inference"}
    assert frame["status"].value_counts().to_dict() == {"ok": 15, "unsupported": 7}


def test_its_points_are_those_of_its_study_today() -> None:
    points = {point.id for point in Study.read(RECORDED / "study.toml").points()}
    assert points == {row.id for row in read_rows(RECORDED)}


@pytest.mark.parametrize(
    ("arguments", "says", "writes"),
    [
        (["table"], "metaschedule with trials=2", ""),
        (["compare", "--axis", "compiler"], "times as fast", ""),
        (["observations"], "XIII", ""),
        (["export", "--to", "rows.csv"], "", "rows.csv"),
        (["report", "--out", "report.html"], "report.html", "report.html"),
    ],
    ids=lambda each: each[0] if isinstance(each, list) else "",
)
def test_every_command_reads_it(
    tmp_path: Path, dlas_here: Command, arguments: list[str], says: str, writes: str
) -> None:
    command, *options = arguments
    done = dlas_here(command, str(RECORDED), *options)
    assert done.returncode == 0, done.stderr
    assert says in done.stdout
    assert (tmp_path / writes).exists()
