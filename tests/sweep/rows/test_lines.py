"""A line that is no row is left out, told in one line and counted, whatever reads it."""

from __future__ import annotations

import json
import warnings
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

import dlas
from dlas.errors import DamagedRows
from dlas.face.reporting import context_of
from dlas.face.reporting.sections import trust
from dlas.sweep.rows.frame import DAMAGED as COUNTED
from dlas.sweep.rows.frame import read
from dlas.sweep.rows.results import FILE, Row, read_rows
from tests.fixtures.commands import Command
from tests.fixtures.odd_rows import DAMAGED
from tests.fixtures.rows import again, failing, row, write

GOOD = [row(10), row(20, algorithm="gemm"), row(5, batch=4), row(8, batch=4, algorithm="gemm")]


def written(folder: Path, *lines: bytes) -> Path:
    """Return a folder of rows that are no rows between those that are."""
    write(folder, GOOD)
    with (folder / FILE).open("ab") as file:
        file.writelines([*lines, failing(batch=8).line().encode()])
    return folder


@pytest.mark.parametrize("what", DAMAGED)
def test_a_damaged_line_is_left_out_and_told_with_its_number(tmp_path: Path, what: str) -> None:
    line, said = DAMAGED[what]
    folder = written(tmp_path, line)
    with pytest.warns(DamagedRows) as told:
        found = dlas.read(folder)
    (message,) = (str(each.message) for each in told)
    assert message.startswith(f"{folder / FILE}, line 5: ") and said in message
    assert message.endswith("; this row is left out") and len(message.splitlines()) == 1
    assert len(found) == 5 and found.attrs[COUNTED] == 1
    with pytest.warns(DamagedRows, match="line 5"):
        assert [each.id for each in read_rows(folder)] == found["id"].tolist()


@pytest.mark.parametrize(
    ("right", "wrong", "said"),
    [
        ('{"id"', '{"more":"\udcff","id"', "utf-8"),
        ('{"id"', '{"more":{"a":1e999},"id"', ""),
        ('{"id"', '{"more":' + 5_000 * "9" + ',"id"', ""),
        ('"macs":555422720', '"macs":1e300', "macs"),
        ('"device":{', '"device":{"\\ud83d":1,', "utf-8"),
        ('"dataset":{"name":"digits"}', '"dataset":null', "dataset"),
    ],
)
def test_rows_and_their_table_leave_out_the_same_lines(
    tmp_path: Path, right: str, wrong: str, said: str
) -> None:
    line = row(9, batch=11).line().replace(right, wrong, 1).encode("utf-8", "surrogateescape")
    folder = written(tmp_path, line)
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        rows, frame = list(read_rows(folder)), dlas.read(folder)
    assert [each.id for each in rows] == frame["id"].tolist() and len(rows) == (5 if said else 6)
    assert len({str(each.message) for each in told}) == bool(said)
    assert all(said in str(each.message) for each in told)


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["table", "rows"], "8 rows left out: damaged"),
        (["compare", "rows", "--axis", "algorithm"], "8 rows left out: damaged"),
        (["export", "rows", "--to", "rows.csv"], ""),
        (["fit", "mean", "rows", "--target", "latency_s", "--to", "predictor"], ""),
    ],
    ids=lambda each: each[0] if isinstance(each, list) else "",
)
def test_commands_tell_damaged_lines_once(
    tmp_path: Path, dlas_here: Command, words: list[str], says: str
) -> None:
    written(tmp_path / "rows", *(line for line, _ in DAMAGED.values()))
    done = dlas_here(*words)
    warned = [line for line in done.stderr.splitlines() if line.startswith("warning: ")]
    assert len(warned) == 1 and "8 rows are left out (lines 5, 6, 7, 8, 9, 10, 11, 12)" in warned[0]
    assert says in done.stdout and "Traceback" not in done.stderr and "DamagedRows" not in done.stderr
    # These rows are too few to be fitted.
    assert done.returncode == (2 if words[0] == "fit" else 0), done.stderr


def test_a_report_counts_damaged_lines(tmp_path: Path) -> None:
    folder = written(tmp_path, *(line for line, _ in DAMAGED.values()))
    with pytest.warns(DamagedRows, match="8 rows are left out") as told:
        context = context_of([folder])
    assert len(told) == 1
    assert "8 rows left out: damaged." in str(trust.section(context))


def test_a_damaged_retry_does_not_hide_the_row_before_it(tmp_path: Path) -> None:
    kept = again(row(10), started="2026-01-03T00:00:00+00:00")
    line = row(10).line().replace('"latency_s":[', '"latency_s":[-1.0,')
    folder = write(tmp_path, [row(10), kept, row(batch=2)], tail=2 * line)
    with pytest.warns(DamagedRows, match="line 4: .*2 rows are left out .lines 4, 5."):
        assert list(read_rows(folder)) == [row(batch=2), kept]


def test_lines_are_read_as_rows_are(tmp_path: Path) -> None:
    """The table of lines is that of whole rows, of this schema and of those before."""
    cores = {"cpu": "Imaginary", "physical_cores": 2, "l1d_bytes": 65536}
    path = {"path": "0101", "ratio": 0.5}
    contents: list[dict[str, Any]] = [
        {"device": cores},
        {"schema": 2, "peak_memory_bytes": 7, "resident_bytes": None},
        {"schema": 3, "unstable": True, "unstable_reason": "the medians differ"},
        {"schema": 3, "reached": path, "expected_speedup": 2.0},
        {"model": "vgg", "seconds": None, "layers": [None, {"h": 32}], "reached": {"curve": [None]}},
    ]
    texts = [
        json.dumps({**json.loads(row(10, seed=seed).line()), **content})
        for seed, content in enumerate(contents)
    ]
    folder = write(tmp_path, [], tail="".join(f"{text}\n" for text in texts))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        lines, whole = read(folder), [Row.parse(text) for text in texts]
    written = read(write(tmp_path / "again", whole))
    pd.testing.assert_frame_equal(lines.drop(columns="folder"), written.drop(columns="folder"))
    assert [each.status for each in whole] == lines["status"].tolist() == ["ok", "ok", "unstable", "ok", "ok"]
