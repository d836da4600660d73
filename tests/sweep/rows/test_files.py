"""Packed rows read as plain ones do, within bounds; to them nothing is added."""

from __future__ import annotations

import lzma
import shutil
import tracemalloc
from pathlib import Path

import pandas as pd
import pytest

from dlas.errors import InputError
from dlas.sweep.rows.files import FILE, PACKED_FILE, ReadingLimits, complete_lines
from dlas.sweep.rows.frame import read
from dlas.sweep.rows.results import Results, read_rows
from tests.fixtures.commands import Command
from tests.fixtures.rows import again, failing, row, write

STUDY = """
name = "s"
[axes]
model = ["cifar_resnet18"]
"""


def pack(folder: Path) -> Path:
    """Pack a folder's rows with xz."""
    plain = folder / FILE
    (folder / PACKED_FILE).write_bytes(lzma.compress(plain.read_bytes()))
    plain.unlink()
    return folder


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder of packed rows: two algorithms, one of which has a retried row, and a torn line."""
    layers = [{"name": "conv1", "algorithm": "direct", "declined": None, "latency_s": 1e-3}]
    rows = [failing(), row(20, algorithm="gemm"), again(row(10), layers=layers)]
    return pack(write(tmp_path / "packed", rows, tail='{"id":"half'))


def plain_copy(folder: Path) -> Path:
    """Return a copy of a folder whose rows are unpacked."""
    made = folder.with_name("plain")
    made.mkdir()
    (made / FILE).write_bytes(lzma.decompress((folder / PACKED_FILE).read_bytes()))
    return made


def test_packed_rows_are_those_of_the_plain_file(folder: Path) -> None:
    packed, plain = read(folder), read(plain_copy(folder))
    assert packed["status"].tolist() == ["ok", "ok"]
    pd.testing.assert_frame_equal(packed.drop(columns="folder"), plain.drop(columns="folder"))


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["table", "packed"], "2 points: 2 ok"),
        (["show", "packed", row().id], "direct"),
        (["compare", "packed", "--axis", "algorithm"], "1 of 1 group matched"),
        (["observations", "packed"], "XIII"),
        (["export", "packed", "--to", "rows.csv"], ""),
        (["report", "packed", "--out", "report.html"], "report.html"),
        (["choose", "packed", "--to", "choices.toml", "--where", "algorithm=direct"], "conv1"),
    ],
    ids=lambda each: each[0] if isinstance(each, list) else "",
)
def test_every_command_reads_packed_rows(
    dlas_here: Command, folder: Path, words: list[str], says: str
) -> None:
    done = dlas_here(*words)
    assert (done.returncode, done.stderr) == (0, "")
    assert says in done.stdout
    assert [path.name for path in folder.iterdir()] == [PACKED_FILE]


def test_a_sweep_adds_nothing_to_packed_rows(tmp_path: Path, dlas_here: Command, folder: Path) -> None:
    (tmp_path / "study.toml").write_text(STUDY)
    before = sorted(tmp_path.rglob("*"))
    ran = dlas_here("run", "study.toml", "--out", "packed")
    assert ran.returncode == 2
    assert ran.stderr.split("\n")[0].endswith(
        "packed rows (results.jsonl.xz), which stay as they are; give another --out"
    )
    assert sorted(tmp_path.rglob("*")) == before
    with pytest.raises(InputError, match="packed rows"):
        Results(folder)
    assert sorted(tmp_path.rglob("*")) == before


def test_plain_and_packed_rows_in_one_folder_are_an_error(dlas_here: Command, folder: Path) -> None:
    shutil.copy(plain_copy(folder) / FILE, folder)
    done = dlas_here("table", "packed")
    assert done.returncode == 2
    assert "'packed' has both results.jsonl and results.jsonl.xz" in done.stderr


def damaged(packed: bytes) -> dict[str, bytes]:
    """Return damaged forms of a packed file, by what is said of them."""
    middle = len(packed) // 2
    return {
        "it ends too early": packed[:middle],
        "Corrupt input data": packed[:middle] + bytes([packed[middle] ^ 1]) + packed[middle + 1 :],
        "Input format not supported": packed + b"more" * 9,
        "it is empty": b"",
    }


@pytest.mark.parametrize("said", damaged(bytes(9)))
def test_a_damaged_file_is_one_message(dlas_here: Command, folder: Path, said: str) -> None:
    path = folder / PACKED_FILE
    path.write_bytes(damaged(path.read_bytes())[said])
    done = dlas_here("table", "packed")
    assert done.returncode == 2 and "Traceback" not in done.stderr
    assert f"packed/{PACKED_FILE} cannot be unpacked: {said}" in done.stderr.replace("\n", " ")


def test_a_plain_file_with_the_name_of_a_packed_one_is_refused(folder: Path) -> None:
    (folder / PACKED_FILE).write_text(row().line())
    with pytest.raises(InputError, match="cannot be unpacked"):
        read(folder)


def test_streams_behind_each_other_and_padding_are_read(tmp_path: Path) -> None:
    rows = [row(batch=batch).line().encode() for batch in (1, 2)]
    (tmp_path / PACKED_FILE).write_bytes(b"\0\0\0\0".join(map(lzma.compress, rows)) + b"\0" * 8)
    assert [row.batch for row in read_rows(tmp_path)] == [1, 2]


def test_a_line_that_is_cut_by_the_pieces_is_whole(tmp_path: Path) -> None:
    rows = [row(batch=batch, note="x" * length) for batch, length in ((1, 3 << 20), (2, 5), (3, 1 << 20))]
    write(tmp_path, rows)
    plain = list(read_rows(tmp_path))
    assert list(read_rows(pack(tmp_path))) == plain == rows


def test_a_file_that_unpacks_to_too_much_is_refused_before_it_fills_the_memory(tmp_path: Path) -> None:
    path = tmp_path / PACKED_FILE
    path.write_bytes(lzma.compress((b" " * (1 << 20) + b"\n") * 20))
    assert path.stat().st_size < 20_000
    tracemalloc.start()
    with pytest.raises(InputError, match="unpacks to more than 3,000,000 bytes: too large for rows"):
        sum(1 for _ in complete_lines(path, ReadingLimits(total_bytes=3_000_000)))
    assert tracemalloc.get_traced_memory()[1] < 15 << 20
    tracemalloc.stop()
    for bounds, said in (
        (ReadingLimits(ratio=100), "unpacks to more than 16,777,216 bytes"),
        (ReadingLimits(line_bytes=1_000_000), "a line of more than 1,000,000 bytes"),
        (ReadingLimits(decoder_bytes=1 << 20), "Memory usage limit exceeded"),
    ):
        with pytest.raises(InputError, match=said):
            sum(1 for _ in complete_lines(path, bounds))
