"""Tables of many rows that are kept between commands: the same as from the rows, or made from them."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import pytest

import dlas
from dlas.sweep.rows import frame as frames
from dlas.sweep.rows import kept_frames
from dlas.sweep.rows.frame import read_each
from dlas.sweep.rows.results import FILE
from tests.fixtures.package import ROOT
from tests.fixtures.rows import failing, row, write

ROWS = [row(batch=number, samples=number) for number in range(1, 9)]
KEPT = sorted((ROOT / "experiments").glob("*/rows"))


@pytest.fixture
def tables(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the folder of kept tables; all tables count as large."""
    monkeypatch.setenv("DLAS_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(kept_frames, "LEAST_BYTES", {".jsonl": 0, ".xz": 0})
    return tmp_path / "cache" / kept_frames.FOLDER


def never(*_: object) -> None:
    raise AssertionError("the rows are read")


@pytest.mark.parametrize("folder", KEPT[:3], ids=lambda path: path.parent.name)
def test_a_table_that_was_kept_is_that_of_the_rows(
    folder: Path, tables: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = [read_each(folder, predictions=predictions) for predictions in (False, True)]
    monkeypatch.setattr(frames, "read_current", never)
    for predictions, expected in zip((False, True), made, strict=True):
        found = read_each(folder, predictions=predictions)
        pd.testing.assert_frame_equal(found, expected)
        assert found.attrs == expected.attrs
    assert len(list(tables.iterdir())) == 1


def test_other_rows_and_other_names_of_folders_have_other_tables(tables: Path, tmp_path: Path) -> None:
    write(tmp_path / "out", ROWS)
    assert len(dlas.read(tmp_path / "out")) == 8
    write(tmp_path / "out", [*ROWS, failing(batch=9)])
    assert len(dlas.read(tmp_path / "out")) == 9
    (tmp_path / "out").rename(tmp_path / "other")
    assert set(dlas.read(tmp_path / "other")["folder"]) == {str(tmp_path / "other")}
    assert len(list(tables.iterdir())) == 3


@pytest.mark.parametrize(
    "torn",
    [lambda content: content[:-100], lambda content: content[:200] + b"?" + content[201:], lambda _: b""],
)
def test_a_damaged_table_is_made_again(torn: object, tables: Path, tmp_path: Path) -> None:
    write(tmp_path / "out", ROWS)
    expected = dlas.read(tmp_path / "out")
    (table,) = tables.iterdir()
    content = table.read_bytes()
    table.write_bytes(torn(content))  # type: ignore[operator]
    pd.testing.assert_frame_equal(dlas.read(tmp_path / "out"), expected)
    assert table.read_bytes() == content


def test_rows_with_damaged_lines_are_read_each_time(tables: Path, tmp_path: Path) -> None:
    write(tmp_path / "out", ROWS)
    with (tmp_path / "out" / FILE).open("a") as file:
        file.write("{\n")
    for _ in range(2):
        with pytest.warns(dlas.errors.DamagedRows):
            assert dlas.read(tmp_path / "out").attrs[frames.DAMAGED] == 1
    assert not tables.exists()


def test_a_cache_that_cannot_be_written_is_no_reason_not_to_read(tables: Path, tmp_path: Path) -> None:
    tables.parent.mkdir()
    tables.write_text("a file in the place of the folder")
    write(tmp_path / "out", ROWS)
    assert len(dlas.read(tmp_path / "out")) == 8


def test_the_tables_used_longest_ago_go_first(
    tables: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(tmp_path / "first", ROWS)
    dlas.read(tmp_path / "first")
    (first,) = tables.iterdir()
    monkeypatch.setattr(kept_frames, "MOST_BYTES", int(1.5 * first.stat().st_size))
    write(tmp_path / "second", ROWS)
    dlas.read(tmp_path / "second")
    (second,) = tables.iterdir()
    assert second != first
