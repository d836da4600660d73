"""Machines: what tells them apart, and what they are called."""

from __future__ import annotations

import json
import lzma
from pathlib import Path
from typing import Any

import pytest

from dlas.analysis.compare import compare
from dlas.analysis.matching import by_device
from dlas.analysis.roles import with_roles
from dlas.analysis.winners import standings
from dlas.face.tables.points import table
from dlas.sweep.rows.frame import read
from dlas.sweep.rows.machines import (
    differences,
    machine_id,
    machine_name,
    with_core_caches,
    with_threads,
)
from dlas.sweep.rows.results import Row
from tests.fixtures.printing import printed
from tests.fixtures.rows import row, write

XEON: dict[str, Any] = {
    "name": "local_cpu",
    "threads": 2,
    "cpu": "Intel(R) Xeon(R) Processor",
    "vendor": "GenuineIntel",
    "family": "6",
    "model": "207",
    "stepping": "2",
    "architecture": "x86_64",
    "extensions": ["avx", "avx2", "avx512f", "fma", "sse4_1"],
    "physical_cores": 16,
    "allowed_cores": 2,
    "l2_bytes": 33554432,
    "memory_bytes": 64 * 10**9,
}
EPYC = {**XEON, "cpu": "AMD EPYC", "vendor": "AuthenticAMD", "family": "25", "physical_cores": 2}
NARROW = {**EPYC, "extensions": ["avx", "avx2", "fma", "sse4_1"]}


def test_a_machine_has_a_short_name_that_tells_it_apart() -> None:
    assert machine_name(XEON) == "Intel Xeon 6/207/2, AVX-512, 16 cores"
    assert machine_name(EPYC) == "AMD EPYC 25/207/2, AVX-512, 2 cores"
    assert machine_name(NARROW) == "AMD EPYC 25/207/2, AVX2, 2 cores"
    arm = {"vendor": "Arm", "family": "8", "model": "0xd03", "extensions": ["asimd"], "physical_cores": 1}
    assert machine_name(arm) == "Arm 8/0xd03/?, Neon, 1 core"
    assert machine_name({"gpu": "Volta", "cpu": "Carmel"}) == "Volta, Carmel, otherwise unknown"
    assert machine_name({"name": "board", "title": "A board"}) == "A board"
    assert machine_name({}) is machine_id({}) is None


@pytest.mark.parametrize(
    ("changed", "same"),
    [
        ({"threads": 1, "allowed_cores": 1, "quota_cores": 1.5}, True),
        ({"memory_bytes": 1, "kernel": "6.1", "governor": "powersave", "name": "intel_i7_8700"}, True),
        ({"stepping": "3"}, False),
        ({"l2_bytes": 1}, False),
        ({"extensions": ["avx"]}, False),
        ({"physical_cores": 8}, False),
        ({"model": None}, False),
    ],
)
def test_processor_caches_and_cores_make_a_machine_and_settings_do_not(
    changed: dict[str, Any], same: bool
) -> None:
    assert (machine_id(XEON) == machine_id({**XEON, **changed})) is same


def test_unknown_facts_differ_from_none_and_the_name_says_so() -> None:
    assert differences({"cpu": "Intel(R) Xeon(R) Processor"}, XEON) == []
    assert machine_name({"cpu": "AMD EPYC", "physical_cores": 2}) == "AMD EPYC, 2 cores, otherwise unknown"
    assert differences(NARROW, EPYC) == ["extensions (only here: avx512f)"]


def test_machines_that_share_a_name_show_their_fingerprints(tmp_path: Path) -> None:
    larger = {**EPYC, "l2_bytes": 2**30}
    frame = read(write(tmp_path, [row(device=EPYC), row(batch=2, device=larger)]))
    assert frame["machine"].nunique() == 2 == frame["machine_id"].nunique()
    assert frame["machine"][0] == f"AMD EPYC 25/207/2, AVX-512, 2 cores ({machine_id(EPYC)})"


def test_two_machines_of_one_processor_name_are_not_compared(tmp_path: Path) -> None:
    """Rows of one machine of each kind; before, both were "AMD EPYC (2 cores)"."""
    rows = [row(30, device=EPYC), row(10, algorithm="gemm", device=NARROW)]
    frame = read(write(tmp_path, rows))
    assert not compare(frame, "algorithm").groups
    assert len(standings(with_roles(frame))) == 2
    text = printed(table(frame), 200)
    assert "AMD EPYC 25/207/2, AVX2, 2 cores" in text and "AMD EPYC 25/207/2, AVX-512, 2 cores" in text
    assert by_device(frame)["hardware"].nunique() == 2


def test_one_machine_with_other_threads_is_another_setting(tmp_path: Path) -> None:
    """A study leaves the threads to the affinity, which two runs had different."""
    first = write(tmp_path / "one", [row(30, device={**XEON, "threads": 1})])
    second = write(tmp_path / "two", [row(10, device=XEON)])
    frame = read([first, second])
    assert frame["hardware"].tolist() == ["local_cpu(threads=1)", "local_cpu(threads=2)"]
    assert frame["machine"].nunique() == 1
    assert read(first)["hardware"].tolist() == ["local_cpu"]
    comparison = compare(frame, "hardware")
    assert len(comparison.groups) == 1 and comparison.repeated == 0


def test_threads_stand_among_a_labels_options() -> None:
    assert with_threads("local_cpu", 2) == "local_cpu(threads=2)"
    assert with_threads("board(place=here, zone=1)", 2) == "board(place=here, threads=2, zone=1)"
    assert with_threads("local_cpu(threads=1)", 2) == "local_cpu(threads=1)"


RECORDED = Path(__file__).parents[2] / "data/recorded/sweep/results.jsonl.xz"


def test_a_row_of_before_tells_caches_for_each_core_and_is_of_the_same_machine() -> None:
    line = lzma.decompress(RECORDED.read_bytes()).decode().splitlines()[0]
    before, device = json.loads(line)["device"], Row.parse(line).device
    assert "l1d_core_bytes" not in before and device["l1d_bytes"] == 98304
    assert (device["l1d_core_bytes"], device["l2_core_bytes"]) == (48 * 1024, 1024 * 1024)
    assert machine_id(device) == machine_id(before) == "a4ed79fe"
    assert differences(device, before) == differences(before, device) == []
    again = Row.parse(Row.parse(line).line())
    assert again.device == device, "a row that was written with them is read as it is"


@pytest.mark.parametrize("device", [{}, {"l1d_bytes": 65536}, {"l1d_bytes": "many", "physical_cores": 2}])
def test_caches_for_each_core_are_left_out_where_they_are_unknown(device: dict[str, Any]) -> None:
    assert with_core_caches(device) == device
