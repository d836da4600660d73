from __future__ import annotations

import os
from pathlib import Path

import pytest

from dlas.bench.store import toml
from dlas.errors import InputError


@pytest.mark.parametrize(
    ("content", "complaint"),
    [
        (b"a = 1\na = [1,", r"broken TOML.*: line 2 is 'a = \[1,'"),
        (b"a = " + b"[" * 100_000, "nested too deeply"),
        (b"a = " + b"9" * 5000, "limit.*: line 1 is 'a = 9{100,160}'$"),
        (b"\xff\xfe\x00", "not a text file in UTF-8"),
        (b"#" * 1_000_001, "a table of over 1,000,000 bytes"),
    ],
    ids=["unclosed", "deep", "long number", "binary", "large"],
)
def test_a_broken_file_is_quoted(tmp_path: Path, content: bytes, complaint: str) -> None:
    path = tmp_path / "broken.toml"
    path.write_bytes(content)
    with pytest.raises(InputError, match=complaint) as caught:
        toml.read(path, "table")
    assert str(caught.value).startswith(str(path))


@pytest.mark.parametrize("name", ["absent.toml", "."])
def test_a_file_that_cannot_be_read_is_named(tmp_path: Path, name: str) -> None:
    with pytest.raises(InputError, match="cannot read the table "):
        toml.read(tmp_path / name, "table")


def test_what_has_no_end_is_not_read(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    for path in (Path("/dev/zero"), tmp_path / "pipe"):
        with pytest.raises(InputError, match=f"cannot read the table '{path}': it is a pipe or a device"):
            toml.read(path, "table")


def test_a_byte_order_mark_is_no_part_of_the_text(tmp_path: Path) -> None:
    (tmp_path / "marked.toml").write_bytes(b'\xef\xbb\xbfname = "s"\n')
    assert toml.read(tmp_path / "marked.toml", "study") == {"name": "s"}
