"""The atlas: every row with its failures, nothing from elsewhere, texts as texts, whatever the rows."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

import dlas
from dlas.errors import DamagedRows, InputError
from dlas.face.atlas.columns import COLUMNS
from dlas.face.atlas.data import data_of
from dlas.face.atlas.writing import page
from dlas.stack import PART_AXES
from dlas.sweep.rows.columns import OF_TIME, ORDER
from dlas.sweep.rows.frame import frame_of
from dlas.sweep.rows.results import Row
from tests.fixtures.commands import Command
from tests.fixtures.odd_rows import EVIL, ODD
from tests.fixtures.rows import failing, row, write

DATA = re.compile(r'<script type="application/json" id="data">(.*?)</script>', re.DOTALL)


def data(text: str) -> dict[str, Any]:
    """Return what a page's script reads."""
    (found,) = DATA.findall(text)
    told: dict[str, Any] = json.loads(found)
    return told


def values(told: dict[str, Any], name: str) -> list[Any]:
    """Return a column of a page, a value for each row."""
    (column,) = [column for column in told["columns"] if column["name"] == name]
    if "numbers" in column:
        return list(column["numbers"])
    return [None if code < 0 else column["values"][code] for code in column["codes"]]


def test_columns_are_those_of_rows_and_stand_once() -> None:
    names = [column.name for column in COLUMNS]
    assert len(set(names)) == len(names) and set(names) <= set(ORDER)
    assert COLUMNS[0].name == "model", "the table's first column names its rows"


def test_every_row_is_there_with_its_failure(tmp_path: Path) -> None:
    first = write(tmp_path / "first", [row(10, batch=1), row(7, batch=1, algorithm="gemm")])
    second = write(tmp_path / "second", [failing("unsupported", batch=2), failing("timeout", batch=4)])
    told = data(dlas.atlas([first, second], to=tmp_path / "a" / "site").read_text())
    assert told["rows"] == 4
    assert values(told, "folder") == [str(first)] * 2 + [str(second)] * 2
    assert values(told, "status") == ["ok", "ok", "unsupported", "timeout"]
    assert values(told, "reason") == [None, None, "it was unsupported", "it was timeout"]
    assert values(told, "latency_s")[:2] == pytest.approx([0.01, 0.007], rel=0.02)
    assert values(told, "latency_s")[2:] == [None, None]
    assert values(told, "peak_memory_bytes")[0] == 12_345_700, "six digits"


def test_parts_are_told_with_their_options_and_filtered_by_their_names() -> None:
    levels = [{"name": "weight_pruning", "level": level} for level in (0.5, 0.8)]
    told = data_of(frame_of(row(compression=level) for level in levels))
    (column,) = [column for column in told["columns"] if column["name"] == "compression"]
    assert column["values"] == ["weight_pruning(level=0.5)", "weight_pruning(level=0.8)"]
    assert column["groups"] == ["weight_pruning"] * 2
    assert {column["name"] for column in told["columns"] if "groups" in column} == set(PART_AXES)


def test_times_that_are_no_result_are_left_out() -> None:
    unstable = row(status="unstable", reason="slices differ", latency_s=[0.1, 0.5], energy_j=1.0)
    told = data_of(frame_of([unstable]))
    assert values(told, "reason") == ["slices differ"]
    shown = [column.name for column in COLUMNS if column.name in OF_TIME]
    assert all(values(told, name) == [None] for name in shown)


@pytest.mark.parametrize("odd", ODD)
def test_odd_rows_make_a_page(odd: str, tmp_path: Path) -> None:
    rows, tail = ODD[odd]
    folder = write(tmp_path / "rows", rows, tail)
    if odd == "no rows":
        with pytest.raises(InputError, match=r"^no rows in '.*rows'$"):
            dlas.atlas(folder, to=tmp_path / "site")
        assert not (tmp_path / "site").exists()
    else:
        told = data(dlas.atlas(folder, to=tmp_path / "site").read_text())
        assert told["rows"] == len(dlas.read(folder)) > 0


def hostile() -> Row:
    """A row all of whose texts are markup."""
    return failing(study=EVIL, model=EVIL, compression={"name": EVIL, EVIL: EVIL}, reason=EVIL, step=EVIL)


def test_markup_in_rows_is_text_in_the_data_and_nowhere_else() -> None:
    text = page(frame_of([hostile()]))
    assert "<img" not in text and text.count("</script>") == 2
    told = data(text)
    assert values(told, "model") == values(told, "reason") == values(told, "study") == [EVIL]


def test_the_page_names_no_other_file_and_may_ask_for_none(tmp_path: Path) -> None:
    text = page(frame_of([row()]))
    assert re.findall(r'(?:src|href)="([^"]*)"', text) == ["data:,", "#table", "#"]
    assert "default-src 'none'" in text and "connect-src" not in text
    assert not re.search(r"https?://|@import|\bfetch\(|XMLHttpRequest|\bimport\b", text)


def test_damaged_lines_are_counted(tmp_path: Path) -> None:
    folder = write(tmp_path / "rows", [row()], '{"id":"half\n')
    with pytest.warns(DamagedRows):
        assert "1 damaged line left out" in dlas.atlas(folder, to=tmp_path / "site").read_text()


def test_an_earlier_page_is_replaced_and_nothing_else_is_left(tmp_path: Path) -> None:
    folder, site = write(tmp_path / "rows", [row()]), tmp_path / "site"
    dlas.atlas(folder, to=site)
    write(folder, [row(batch=batch) for batch in (1, 2)])
    assert dlas.atlas([folder], to=site) == site / "index.html"
    assert data((site / "index.html").read_text())["rows"] == 2
    assert [path.name for path in site.iterdir()] == ["index.html"]


def test_what_cannot_be_read_or_written_is_one_message(tmp_path: Path, dlas_here: Command) -> None:
    folder = write(tmp_path / "rows", [row()])
    (tmp_path / "file").write_text("mine")
    (tmp_path / "taken" / "index.html").mkdir(parents=True)
    for words, said in (
        (["nothing", "--to", "site"], "no results.jsonl in 'nothing'"),
        (["file", "--to", "site"], "'file' is a file: give the folder"),
        (["rows", "--to", "file"], "--to 'file' is a file: give a folder for the page index.html"),
        (["rows", "--to", "file/site"], "'file' is a file"),
        (["rows", "--to", "taken"], "cannot write 'taken/index.html'"),
    ):
        refused = dlas_here("atlas", *words)
        assert refused.returncode == 2 and said in refused.stderr and not refused.stdout, words
    assert (tmp_path / "file").read_text() == "mine" and folder.is_dir()
    made = dlas_here("atlas", "rows", "--to", "site")
    assert made.returncode == 0 and made.stdout.startswith("site/index.html")
