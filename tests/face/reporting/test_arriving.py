"""Rows that arrive in folders, read once each."""

from __future__ import annotations

from pathlib import Path

from dlas.face.reporting.arriving import ArrivingRows
from tests.fixtures.rows import failing, row, write


def test_rows_are_counted_as_they_come_and_the_last_one_is_told(tmp_path: Path) -> None:
    rows = ArrivingRows([tmp_path / "one", tmp_path / "two"])
    rows.look()
    assert not rows.statuses and rows.latest == "", "no folder is there yet"
    write(tmp_path / "one", [row(id="a", latency_s=[0.25, 0.5, 0.75])])
    rows.look()
    assert rows.statuses == {"ok": 1} and rows.latest.endswith(": 500.0 ms")
    with (tmp_path / "one" / "results.jsonl").open("a") as file:
        line = failing(id="b").line()
        file.write(line + "{damaged\n" + line[:30])
        file.flush()
        rows.look()
        assert rows.statuses == {"ok": 1, "failed": 1} and rows.latest.endswith(": failed")
        file.write(line[30:])
    rows.look()
    assert rows.statuses == {"ok": 1, "failed": 1}, "the row of a point replaces its earlier one"


def test_a_file_that_is_replaced_is_read_from_its_beginning(tmp_path: Path) -> None:
    rows = ArrivingRows([tmp_path])
    write(tmp_path, [row(id=name) for name in "abc"])
    rows.look()
    (tmp_path / "results.jsonl").rename(tmp_path / "before.jsonl")
    write(tmp_path, [row(id="d")])
    rows.look()
    assert rows.statuses == {"ok": 1}
