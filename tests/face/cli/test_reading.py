"""The commands that read rows: ids, the fastest, filters and JSON."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from dlas.sweep.study.kept import keep
from tests.fixtures.commands import Command
from tests.fixtures.rows import failing, row, write

ROWS = [
    row(30, batch=1),
    row(10, batch=1, algorithm="gemm"),
    row(8, batch=8, compiler={"name": "metaschedule", "trials": 64}),
    failing("timeout", batch=8, algorithm="gemm"),
]


@pytest.fixture(autouse=True)
def folder(tmp_path: Path) -> Path:
    return write(tmp_path / "rows", ROWS)


def test_a_table_names_every_row_by_what_show_finds_it(dlas_here: Command) -> None:
    lines = dlas_here("table", "rows").stdout.splitlines()
    for one in ROWS:
        (line,) = [line for line in lines if one.id[:8] in line.split()]
        shown = dlas_here("show", "rows", line.split()[-1])
        assert shown.stdout.startswith(one.id)


def test_the_fastest_row_is_shown_without_its_id(dlas_here: Command) -> None:
    assert dlas_here("show", "rows", "--fastest", "--where", "batch=1").stdout.startswith(ROWS[1].id)
    several = dlas_here("show", "rows", "--fastest")
    assert several.returncode == 2 and "--where axis=value (batch: 1, 8)" in several.stderr
    none = dlas_here("show", "rows", "--fastest", "--where", "status=timeout")
    assert none.returncode == 2 and "no row has a time" in none.stderr
    for words in ([], [ROWS[0].id, "--fastest"], [ROWS[0].id, "--where", "batch=1"]):
        assert dlas_here("show", "rows", *words).returncode == 2


def test_every_command_with_filters_takes_conditions(dlas_here: Command) -> None:
    fast = "algorithm == 'gemm' and status == 'ok'"
    assert "1 ok" in dlas_here("table", "rows", "--where", fast).stdout
    assert ROWS[2].id[:8] in dlas_here("table", "rows", "--where", "compiler.trials >= 64").stdout
    assert dlas_here("export", "rows", "--to", "rows.csv", "--where", fast).returncode == 0
    assert len(Path("rows.csv").read_text().splitlines()) == 2
    refused = dlas_here("table", "rows", "--where", "__import__('os').abort() == 1")
    assert refused.returncode == 2 and "is no axis" in refused.stderr


def test_many_rows_are_read_with_a_line_on_filters(
    dlas_here: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    from dlas.face.cli import rows

    assert "--where" not in dlas_here("table", "rows").stderr
    monkeypatch.setattr(rows, "LARGE_BYTES", 10)
    for words in (("table", "rows"), ("compare", "rows", "--axis", "algorithm")):
        assert "GB of rows: with --where" in dlas_here(*words).stderr
        assert "--where" not in dlas_here(*words, "--where", "batch=1").stderr


def test_table_compare_and_show_print_json(dlas_here: Command) -> None:
    table = json.loads(dlas_here("table", "rows", "--json").stdout)
    assert [line["id"] for line in table] == [ROWS[i].id for i in (1, 0, 2, 3)]
    assert table[0]["relative"] == 1 and table[0]["latency_s"] == pytest.approx(0.01, rel=0.05)
    assert table[3]["latency_s"] is None and table[3]["status"] == "timeout"
    compared = json.loads(dlas_here("compare", "rows", "--axis", "algorithm", "--json").stdout)
    (group,) = compared["groups"]
    assert group["rows"]["gemm"]["ratio"][0] == pytest.approx(3, rel=0.05)
    assert compared["baseline"] == "direct" and group["key"]["batch"] == "1"
    shown = json.loads(dlas_here("show", "rows", ROWS[2].id[:8], "--json").stdout)
    assert shown["compiler"] == {"name": "metaschedule", "trials": 64}
    assert shown["latency_s"] == ROWS[2].latency_s


@pytest.mark.slow
def test_every_command_tells_which_points_of_a_study_have_no_row(dlas_here: Command) -> None:
    keep(Path("rows"), 'name = "s"\n', 9)
    told = "rows has rows of 4 of the 9 points of its study; 5 missing, to go on: dlas run rows"
    filtered = ["--where", "batch=1"]
    for words in (
        ["table", "rows"],
        ["table", "rows", *filtered],
        ["compare", "rows", "--axis", "algorithm"],
        ["observations", "rows"],
        ["export", "rows", "--to", "rows.csv"],
        ["show", "rows", "--fastest", *filtered],
        ["table", "rows", "--json"],
        ["compare", "rows", "--axis", "algorithm", "--json"],
    ):
        said = dlas_here(*words)
        line = told + (" (before filters)" if "--where" in words else "")
        assert said.returncode == 0 and f"{line}\n" in said.stdout + said.stderr, words
    table = json.loads(dlas_here("table", "rows", "--json").stdout)
    assert [line["missing_points"] for line in table] == [5] * 4
    compared = json.loads(dlas_here("compare", "rows", "--axis", "algorithm", "--json").stdout)
    assert [each["missing"] for each in compared["missing"]] == [5]
    assert dlas_here("report", "rows").returncode == 0
    assert f"1 timeout. {told}." in Path("rows/report.html").read_text()
